"""`alg:private_attack2`, `thm:main`: k+2 private vectors, exactly."""

import numpy as np
import pytest

import unveil


@pytest.mark.parametrize(
    ("k", "n", "m", "d"),
    [(2, 30, 200, 3072), (3, 14, 500, 8192), (4, 11, 600, 12288), (5, 12, 900, 12288)],
)
def test_all_vectors_of_one_floral_come_back_up_to_one_sign_per_pixel(k, n, m, d):
    sim = unveil.simulate(unveil.Scheme(k), n, m=m, d=d, rng=0)
    recovery = unveil.learn_private_image(sim.encodings)
    scores = unveil.score(recovery, sim.private, tolerance=1e-4)
    assert (scores.exact, scores.wrong) == (k + 2, 0)
    assert not recovery.signed
    for vector, index in zip(recovery.vectors, scores.matches, strict=True):
        np.testing.assert_allclose(np.abs(vector), np.abs(sim.private[index]), atol=1e-4)


@pytest.mark.parametrize("weighting", ["equal", "paper", "convex"])
def test_with_a_public_part_the_signs_come_back_too(weighting):
    sim = unveil.simulate(unveil.Scheme(2, 2, weighting), 25, n_public=80, m=200, d=12288, rng=1)
    recovery = unveil.learn_private_image(sim.encodings, sim.public)
    scores = unveil.score(recovery, sim.private, tolerance=1e-4)
    assert recovery.signed
    assert (scores.exact, scores.wrong) == (4, 0)
    np.testing.assert_allclose(recovery.vectors, sim.private[scores.matches], atol=1e-4)


def test_the_swapped_labelling_is_never_verified():
    """k = 2, many seeds, small: about half of the florals are found with the swapped labels first
    (docs/paper_map.md, 8)."""
    verified = 0
    for seed in range(25):
        sim = unveil.simulate(unveil.Scheme(2), 16, m=60, d=2048, rng=seed)
        recovery = unveil.learn_private_image(sim.encodings)
        scores = unveil.score(recovery, sim.private)
        assert scores.wrong == 0
        verified += scores.exact == 4
    assert verified >= 20
