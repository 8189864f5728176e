"""The folded likelihood against plain NumPy, its gradient against differences, and what is called
certain is right."""

import numpy as np

from unveil import Scheme, learn_public, simulate
from unveil.paper.folded_search import gradient, log_likelihood, start_supports, survey_public


def plain(y, mu, v):
    both = np.exp(-((y - mu) ** 2) / (2 * v)) + np.exp(-((y + mu) ** 2) / (2 * v))
    return float(np.log(both / np.sqrt(2 * np.pi * v)).sum())


def test_likelihood_and_gradient_are_those_of_the_model():
    rng = np.random.default_rng(0)
    P, Y = rng.standard_normal((5, 60)), np.abs(rng.standard_normal((2, 60)))
    S, w, v = np.array([[0, 3], [2, -1]]), 0.5, 0.7
    args = Y.astype(np.float32), P.astype(np.float32), np.array([0, 1]), S
    mu = np.array([w * (P[0] + P[3]), w * P[2]])
    expected = [plain(y, m, v) for y, m in zip(Y, mu, strict=True)]
    np.testing.assert_allclose(log_likelihood(*args, w, v), expected, rtol=1e-5)
    at = gradient(*args, w, v)
    np.testing.assert_allclose(at.log_likelihood, expected, rtol=1e-5)
    step = 1e-4
    slope = (plain(Y[0], mu[0] + step * P[1], v) - plain(Y[0], mu[0] - step * P[1], v)) / (2 * step)
    assert abs(at.residual[0] @ P[1] / v - slope) < 1e-2


def test_starts_are_the_best_of_the_quadratic_form():
    rng = np.random.default_rng(1)
    P = rng.standard_normal((8, 4000)).astype(np.float32)
    Y = np.abs(P[2] + P[5] + 0.5 * rng.standard_normal(4000)).astype(np.float32)[None]
    starts = start_supports(Y, P, np.arange(8)[None], 2, 3, 1, 1 << 24)
    assert sorted(starts[0, 0].tolist()) == [2, 5]


def test_equal_and_empty_vectors_are_told():
    P = np.random.default_rng(2).standard_normal((6, 9)).astype(np.float32)
    P[4], P[1] = P[0], 0
    found = survey_public(P, 1 << 24)
    assert found.interchangeable == ((0, 4),)
    assert found.usable.tolist() == [True, False, True, True, False, True]


def test_certain_is_right_where_pixels_are_few():
    """2,400 encodings at d where up to a fifth of the supports are wrong: none of the certain ones
    is. Odds of 5e-5 against each allow for one in eight such runs."""
    certain = wrong = missed = 0
    for d in (250, 320, 400):
        sim = simulate(Scheme(2, 3, "paper"), 50, n_public=500, m=800, d=d, rng=d)
        found = learn_public(sim.encodings, sim.public)
        right = (found.indices == sim.selection.public).all(axis=1)
        certain += int(found.certain.sum())
        wrong += int((found.certain & ~right).sum())
        missed += int((~right).sum())
    assert wrong == 0
    assert certain > 600
    assert missed > 10
