"""Encoder lint on functions: one honest encoder passes, each slip is found by name."""

import time

import numpy as np
import pytest

from unveil.auditing.encoder_lint import lint_encoder
from unveil.checks import InputError


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


def worst(findings):
    return [f for f in findings if f.severity in ("high", "medium")]


@pytest.mark.parametrize("masks", ["fresh", "absolute"])
@pytest.mark.parametrize("k_public", [0, 2])
def test_an_honest_encoder_has_nothing_but_fixed_weights(masks, k_public):
    found = lint_encoder(
        encoder(masks=masks, k_public=k_public), 100, 30 if k_public else 0, seconds=0.5
    )
    assert worst(found) == []
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
    import re

    options, words = SLIPS[name]
    found = worst(
        lint_encoder(encoder(**options), 50, 60 if "k_public" in options else 0, seconds=1.0)
    )
    assert any(re.search(words, f.what) for f in found), found
    for finding in found:
        assert finding.consequence
        assert finding.cure


def test_the_release_itself_is_tried_and_time_is_a_seed():
    data = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
    honest = encoder()
    released = np.asarray(honest(data, None, int(time.time()) - 30), np.float32)
    found = lint_encoder(honest, 20, released=released, private=data, seconds=20)
    assert any("those of seed" in f.what for f in worst(found))


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
        (lambda private, public, rng: private[:, :3], "number of values"),
        (lambda private, public, rng: np.full((4, 50), np.nan), "NaN"),
    ],
)
def test_broken_encoders_get_one_sentence(function, words):
    with pytest.raises(InputError, match=words):
        lint_encoder(function, 50)


def test_signs_that_noise_turns_are_no_masks():
    def noisy(private, public, rng):
        rng = np.random.default_rng(5) if rng is None else rng
        return private + rng.normal(0, 0.5, private.shape)

    assert not any("mask" in one.what and one.severity == "high" for one in lint_encoder(noisy))
