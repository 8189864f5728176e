"""Lint: every slip is found by name, and honest encodings and encoders are left alone."""

import re
import time

import numpy as np
import pytest

import unveil
from unveil import Encodings, InputError, Scheme, lint_encoder, lint_encodings
from unveil.records import Supports


def grave(findings):
    return [f.what for f in findings if f.severity in ("high", "medium")]


@pytest.mark.parametrize("signs", ["absolute", "random"])
@pytest.mark.parametrize("k_public", [0, 2])
def test_honest_encodings_get_nothing_above_low(signs, k_public):
    for seed in range(3):
        scheme = Scheme(2, k_public, signs=signs)
        sim = unveil.simulate(scheme, 200, n_public=50 if k_public else 0, m=150, d=400, rng=seed)
        supports = Supports(sim.selection.public, np.ones(150), "truth") if k_public else None
        found = lint_encodings(
            sim.encodings,
            supports=supports,
            n_public=50,
            chosen=sim.selection.private,
            n_private=200,
        )
        assert grave(found) == []
        assert any("Weights are the same" in f.what for f in found)


@pytest.mark.parametrize("kind", ["heavy", "smooth"])
def test_honest_random_signs_of_odd_data_are_no_false_alarm(kind):
    rng = np.random.default_rng(0)
    values = rng.standard_t(3, (60, 500))
    values = values if kind == "heavy" else np.cumsum(values, axis=1)
    sim = unveil.simulate(Scheme(2, signs="random"), private=values, m=200, rng=0)
    found = lint_encodings(sim.encodings, chosen=sim.selection.private, n_private=60)
    assert grave(found) == []


def test_slips_that_encodings_show():
    rng = np.random.default_rng(0)
    sim = unveil.simulate(Scheme(2), 2000, m=200, d=1000, rng=0)
    # A row that repeats another one up to signs, and records mixed with themselves.
    Y = sim.encodings.values.copy()
    Y[7] = Y[3]
    Y[10:19] = np.abs(sim.private[:9]) * np.float32(np.sqrt(2))
    said = grave(lint_encodings(Encodings(Y, Scheme(2))))
    assert any(what.startswith("1 encodings repeat") for what in said)
    assert any(what.startswith("9 of 200") and "itself" in what for what in said)
    # Subsets drawn again and again; 33 repeats of 300 are chance, 200 are not.
    chosen = np.sort(rng.permuted(np.tile(np.arange(50), (300, 1)), axis=1)[:, :2], axis=1)
    for subsets, count in ((chosen, 0), (np.tile(chosen[:100], (3, 1)), 1)):
        said = grave(lint_encodings(sim.encodings, chosen=subsets, n_private=50))
        assert len([what for what in said if "repeat a subset" in what]) == count
    # Public vectors from the beginning of the list.
    for last, word in ((1000, []), (100, ["Only the first 100 of 1000 public vectors are used."])):
        used = Supports(rng.integers(0, last, (200, 2)), np.ones(200), "truth")
        said = grave(lint_encodings(sim.encodings, supports=used, n_public=1000))
        assert [what for what in said if "public" in what] == word


@pytest.mark.parametrize("masks", [1, 5, "whole rows"])
def test_masks_that_are_used_again(masks):
    rng = np.random.default_rng(0)
    Y = unveil.simulate(Scheme(2, signs="kept"), 30, m=150, d=400, rng=0).encodings.values
    if masks == "whole rows":
        Y = Y * rng.choice([-1, 1], (150, 1))
    else:
        Y = Y * rng.choice([-1, 1], (masks, 400))[rng.integers(masks, size=150)]
    said = grave(lint_encodings(Encodings(Y, Scheme(2, signs="random"))))
    assert any("masks are not independent" in what for what in said)


def test_noise_on_magnitudes_is_no_mask():
    sim = unveil.simulate(Scheme(2), 40, m=200, d=60, rng=0)
    noise = np.random.default_rng(0).normal(0, 0.05, sim.encodings.values.shape)
    assert grave(lint_encodings(Encodings(sim.encodings.values + noise, Scheme(2)))) == []


def encoder(
    *,
    m=60,
    k=2,
    k_public=0,
    seed=None,
    replace=False,
    masks="fresh",
    weights="fixed",
    subsets="fresh",
    prefix=None,
    glob=False,
):
    """An encoder with at most one slip."""

    def encode(private, public=None, rng=None):
        if glob:
            draw = np.random.default_rng(np.random.randint(1 << 31, size=4))  # noqa: NPY002
        else:
            draw = (
                rng
                if isinstance(rng, np.random.Generator)
                else np.random.default_rng(seed if rng is None else rng)
            )
        n, d = np.shape(private)
        W = np.zeros((m, n))
        for i in range(m):
            chosen = draw.choice(n, k, replace=replace)
            if subsets == "repeated" and i >= m // 3:
                W[i] = W[i % (m // 3)]
                continue
            np.add.at(W[i], chosen, 1.0 if weights == "fixed" else 0.1 + draw.random(k))
        Y = W @ private
        if k_public:
            Y += sum(public[draw.integers(prefix or len(public), size=m)] for _ in range(k_public))
        if masks == "absolute":
            return np.abs(Y)
        coins = draw.choice([-1, 1], (m, d))
        if masks == "constant":
            coins = coins[:1]
        elif masks == "few":
            coins = coins[draw.integers(4, size=m)]
        elif masks == "rows":
            coins = coins[:, :1]
        return Y * coins

    return encode


@pytest.mark.parametrize("masks", ["fresh", "absolute"])
@pytest.mark.parametrize("k_public", [0, 2])
def test_an_honest_encoder_has_nothing_but_fixed_weights(masks, k_public):
    found = lint_encoder(
        encoder(masks=masks, k_public=k_public), 100, 30 if k_public else 0, seconds=0.5
    )
    assert grave(found) == []
    assert [f.what for f in found if f.severity == "low"] == [
        "Weights are the same in every encoding."
    ]


def test_drawn_weights_are_fine():
    found = lint_encoder(encoder(weights="drawn"), 100, seconds=0.2)
    assert {f.severity for f in found} == {"fine"}


SLIPS = {
    "self-pairs": ({"replace": True, "m": 400}, "drawn twice"),
    "repeated subsets": ({"subsets": "repeated"}, "repeat a subset"),
    "constant mask": ({"masks": "constant"}, "The same sign mask"),
    "few masks": ({"masks": "few"}, "Only 4 sign masks"),
    "row signs": ({"masks": "rows"}, "sign masks|flips whole"),
    "fixed seed": ({"seed": 982451653}, "seed is fixed"),
    "global generator": ({"glob": True}, "global generator"),
    "guessable seed": ({"seed": 42}, "those of seed 42"),
    "public prefix": ({"k_public": 2, "prefix": 5}, "first 5 of 60"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_each_slip_is_found(name):
    options, words = SLIPS[name]
    found = lint_encoder(encoder(**options), 50, 60 if "k_public" in options else 0, seconds=1.0)
    assert any(re.search(words, what) for what in grave(found)), found
    for finding in found:
        assert finding.severity == "fine" or (finding.consequence and finding.cure)


def test_the_release_itself_is_tried_and_time_is_a_seed():
    data = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
    honest = encoder()
    released = np.asarray(honest(data, None, int(time.time()) - 30), np.float32)
    found = lint_encoder(honest, 20, released=released, private=data, seconds=20)
    assert any("those of seed" in what for what in grave(found))


def test_the_global_generator_is_left_as_it_was():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    lint_encoder(encoder(), 20, seconds=0.1)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (None, "give a function"),
        (lambda private: private, "must take"),
        (lambda private, public, rng: 1 / 0, "ZeroDivisionError"),
        (lambda private, public, rng: private[:, :3], "as many values"),
        (lambda private, public, rng: np.full((4, 50), np.nan), "NaN"),
    ],
)
def test_broken_encoders_get_one_sentence(function, words):
    with pytest.raises(InputError, match=words):
        lint_encoder(function, 50)


def test_an_encoder_that_draws_nothing_has_no_seed_to_guess():
    found = lint_encoder(lambda private, public, rng: private, 30, seconds=0.2)
    said = [f.what for f in found if "seed" in f.what]
    assert len(said) == 1
    assert "nothing is drawn" in said[0]
