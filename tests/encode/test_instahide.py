"""Encodings against a plain twin, for every weighting and every treatment of signs."""

import sys

import numpy as np
import pytest

from unveil.checks import InputError, row_blocks
from unveil.encode.instahide import encode, mix
from unveil.encodings import Selection
from unveil.scheme import FIXED_WEIGHTINGS, SIGNS, Scheme


def instance(k_private=2, k_public=2, m=20, d=30, seed=0):
    rng = np.random.default_rng(seed)
    private = rng.standard_normal((6, d)).astype(np.float32)
    public = rng.standard_normal((5, d)).astype(np.float32)

    def draw(n, k):
        rows = [rng.choice(n, k, replace=False) for _ in range(m)]
        return np.sort(rows, axis=1).reshape(m, k).astype(np.int64)

    return private, public, Selection(draw(6, k_private), draw(5, k_public))


def plain(private, public, selection, scheme):
    """Xw, one number at a time."""
    m, d = len(selection.private), private.shape[1]
    total = scheme.k_private + scheme.k_public
    private_weight, public_weight = {
        "equal": (total**-0.5, total**-0.5),
        "paper": (max(1, scheme.k_private) ** -0.5, max(1, scheme.k_public) ** -0.5),
        "convex": (1 / total, 1 / total),
    }[scheme.weighting]
    out = np.zeros((m, d))
    for i in range(m):
        for pixel in range(d):
            out[i, pixel] = sum(
                private_weight * float(private[a, pixel]) for a in selection.private[i]
            )
            out[i, pixel] += sum(
                public_weight * float(public[a, pixel]) for a in selection.public[i]
            )
    return out


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
@pytest.mark.parametrize(("k_private", "k_public"), [(2, 0), (2, 2), (3, 1), (0, 2), (1, 4)])
def test_encodings_equal_the_plain_twin(weighting, k_private, k_public):
    private, public, selection = instance(k_private, k_public)
    expected = plain(private, public, selection, Scheme(k_private, k_public, weighting))
    for signs in SIGNS:
        masks = 3 if signs == "masked" else 0
        scheme = Scheme(k_private, k_public, weighting, signs, masks=masks)
        y = encode(private, public, selection, scheme, rng=np.random.default_rng(1))
        assert y.dtype == np.float32
        if signs == "kept":
            np.testing.assert_allclose(y, expected, atol=1e-6)
        else:
            np.testing.assert_allclose(np.abs(y), np.abs(expected), atol=1e-6)
        if signs == "absolute":
            assert (y >= 0).all()


def test_weights_of_their_own_equal_the_plain_twin():
    private, _, selection = instance(3, 0)
    weights = np.random.default_rng(2).random((20, 3))
    expected = [
        sum(w * private[j] for w, j in zip(ws, js, strict=True))
        for ws, js in zip(weights, selection.private, strict=True)
    ]
    chosen = Selection(selection.private, selection.public, weights)
    y = encode(private, None, chosen, Scheme(3, weighting="half-normal", signs="kept"))
    assert y.dtype == np.float32
    np.testing.assert_allclose(y, expected, atol=1e-6)
    with pytest.raises(InputError, match="weights of its own"):
        encode(private, None, selection, Scheme(3, weighting="half-normal"))


def test_masks_are_fair_coins_of_a_pool():
    private, public, selection = instance(m=400, d=500)
    kept = encode(private, public, selection, Scheme(2, 2, signs="kept"))
    scheme = Scheme(2, 2, signs="masked", masks=4)
    masked = encode(private, public, selection, scheme, rng=np.random.default_rng(1))
    masks, uses = np.unique(np.sign(masked * kept), axis=0, return_counts=True)
    assert len(masks) == 4
    assert uses.min() > 60
    assert np.abs(masks @ masks.T / 500 - np.eye(4)).max() < 0.25
    assert np.abs(masks.mean()) < 0.1
    with pytest.raises(InputError, match="say masks="):
        encode(private, public, selection, Scheme(2, 2, signs="masked"), rng=masks)


def test_random_signs_are_fair_independent_coins_for_every_pixel():
    private, public, selection = instance(m=200, d=500)
    kept = encode(private, public, selection, Scheme(2, 2, signs="kept"))
    coins = np.sign(
        encode(
            private, public, selection, Scheme(2, 2, signs="random"), rng=np.random.default_rng(1)
        )
        * kept
    )
    # Each a sum of fair ±1, at six standard deviations: 2e-9 a piece, 701 of them, 1.4e-6 in all.
    assert abs(coins.mean()) < 6 / np.sqrt(coins.size)
    assert np.abs(coins.mean(axis=0)).max() < 6 / np.sqrt(200)
    assert np.abs(coins.mean(axis=1)).max() < 6 / np.sqrt(500)


def test_noise_has_the_standard_deviation_asked_for_and_comes_before_the_absolute_value():
    private, public, selection = instance(m=100, d=400)
    clean = encode(private, public, selection, Scheme(2, 2, signs="kept"))
    noisy = encode(
        private,
        public,
        selection,
        Scheme(2, 2, signs="kept"),
        noise=0.3,
        rng=np.random.default_rng(2),
    )
    hidden = encode(
        private, public, selection, Scheme(2, 2), noise=0.3, rng=np.random.default_rng(2)
    )
    np.testing.assert_array_equal(hidden, np.abs(noisy))
    added = (noisy - clean).astype(np.float64)
    # 40,000 draws: six standard errors of the mean and of the standard deviation, 4e-9.
    assert abs(added.mean()) < 6 * 0.3 / 200
    assert abs(added.std() - 0.3) < 6 * 0.3 / np.sqrt(80_000)


def test_blocks_of_rows_do_not_change_encodings(monkeypatch):
    private, public, selection = instance()
    whole = encode(private, public, selection, Scheme(2, 2))
    monkeypatch.setattr(
        sys.modules["unveil.encode.simulate"],
        "row_blocks",
        lambda array: row_blocks(array, numbers=90),
    )
    np.testing.assert_array_equal(encode(private, public, selection, Scheme(2, 2)), whole)


def test_encoding_leaves_the_vectors_untouched():
    private, public, selection = instance()
    before = private.copy(), public.copy()
    encode(private, public, selection, Scheme(2, 2))
    mix(private, selection.private, 0.5)
    np.testing.assert_array_equal(private, before[0])
    np.testing.assert_array_equal(public, before[1])


def test_mix_is_the_weighted_sum_of_the_chosen():
    vectors = np.arange(12, dtype=np.float32).reshape(4, 3)
    chosen = np.array([[0, 1, 3], [1, 2, 3]])
    np.testing.assert_allclose(mix(vectors, chosen, 0.5), [[6, 7.5, 9], [9, 10.5, 12]])


@pytest.mark.parametrize("noise", [-0.1, float("nan")])
def test_noise_that_is_no_standard_deviation_is_refused(noise):
    private, public, selection = instance()
    with pytest.raises(InputError, match="standard deviation"):
        encode(private, public, selection, Scheme(2, 2), noise=noise, rng=np.random.default_rng(0))


@pytest.mark.parametrize(("signs", "noise"), [("random", 0.0), ("absolute", 0.1)])
def test_randomness_without_a_generator_is_refused(signs, noise):
    private, public, selection = instance()
    with pytest.raises(InputError, match="need rng"):
        encode(private, public, selection, Scheme(2, 2, signs=signs), noise=noise)
