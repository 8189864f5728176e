"""`lem:generic`: the vector of Gaussian subset sums determines the summands, up to one sign."""

from itertools import product

import numpy as np
import pytest

from unveil.paper.floral import floral_labels
from unveil.paper.private_image import solve_sign_system
from unveil.records import Floral


def incidence(k):
    labels = floral_labels(k)
    return Floral(np.arange(len(labels)), labels).incidence


@pytest.mark.parametrize("k", [2, 3])
def test_exactly_two_of_all_sign_patterns_have_a_solution(k):
    A = incidence(k)
    y = np.abs(A @ np.random.default_rng(k).standard_normal(k + 2))
    outside = np.eye(len(A)) - A @ np.linalg.pinv(A)
    patterns = np.array(list(product((1, -1), repeat=len(A))))
    solvable = np.abs((patterns * y) @ outside).max(axis=1) < 1e-9
    assert solvable.sum() == 2


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("public", [False, True])
def test_every_pixel_is_solved_from_its_magnitudes(k, public):
    rng = np.random.default_rng(k)
    A, weight = incidence(k), 0.4
    x = rng.standard_normal((k + 2, 300))
    c = rng.standard_normal((len(A), 300)) if public else None
    y = np.abs(weight * A @ x + (0 if c is None else c))
    solution = solve_sign_system(y, A, weight, c)
    assert solution.settled.all()
    sign = 1.0 if public else np.sign((solution.values * x).sum(axis=0))
    np.testing.assert_allclose(sign * solution.values, x, atol=1e-6)
