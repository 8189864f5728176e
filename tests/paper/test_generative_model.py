"""`defn:gaussian_images`, `defn:select_distribution`, `eq:instahide_def`, `remark:ambiguity`."""

import numpy as np
import pytest

import unveil
from unveil.encode import encode, selection_matrix


@pytest.mark.parametrize("weighting", ["equal", "paper", "convex"])
def test_encodings_are_the_absolute_value_of_X_times_w(weighting):
    scheme = unveil.Scheme(3, 2, weighting)
    sim = unveil.simulate(scheme, 12, n_public=9, m=20, d=50, rng=0)
    W = selection_matrix(sim.selection.private, 12, scheme.private_weight)
    V = selection_matrix(sim.selection.public, 9, scheme.public_weight)
    np.testing.assert_allclose(
        sim.encodings.values, np.abs(W @ sim.private + V @ sim.public), atol=1e-5
    )


@pytest.mark.parametrize(
    ("weighting", "norm2"), [("equal", 1.0), ("paper", 2.0), ("convex", 1 / 5)]
)
def test_the_printed_selection_vector_has_norm_sqrt_two(weighting, norm2):
    scheme = unveil.Scheme(3, 2, weighting)
    assert scheme.private_variance + scheme.public_variance == pytest.approx(norm2)


def test_gaussian_images_are_standard():
    x = unveil.simulate(n_private=200, m=1, d=500, rng=1).private.astype(float)
    # 1e5 samples: five standard errors of mean, variance and kurtosis; fails with probability below
    # 2e-6.
    assert abs(x.mean()) < 5 / np.sqrt(x.size)
    assert abs(x.var() - 1) < 5 * np.sqrt(2 / x.size)
    assert abs((x**4).mean() - 3) < 5 * np.sqrt(96 / x.size)


def test_random_signs_and_absolute_values_carry_the_same_information():
    absolute = unveil.simulate(unveil.Scheme(2), 30, m=40, d=64, rng=5)
    random = unveil.simulate(unveil.Scheme(2, signs="random"), 30, m=40, d=64, rng=5)
    np.testing.assert_array_equal(np.abs(random.encodings.values), absolute.encodings.values)
    assert 0.4 < (random.encodings.values < 0).mean() < 0.6


def test_flipping_all_private_vectors_leaves_encodings_unchanged_only_without_a_public_part():
    for k_public in (0, 2):
        sim = unveil.simulate(unveil.Scheme(2, k_public), 10, n_public=8, m=30, d=40, rng=2)
        flipped = encode(-sim.private, sim.public, sim.selection, sim.encodings.scheme)
        assert np.array_equal(flipped, sim.encodings.values) == (k_public == 0)
