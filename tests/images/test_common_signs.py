"""A sign per pixel common to all images: told by smoothness, region by region."""

import numpy as np
import pytest

from unveil.images import common_signs as module
from unveil.images.common_signs import common_signs, couplings, joined
from unveil.images.prior import image_prior


def images_of(n=30, seed=0, shape=(16, 16)):
    prior = image_prior(shape)
    return prior, prior.draw(n, np.random.default_rng(seed)).astype(np.float32)


@pytest.mark.parametrize("where", ["lower third", "square", "nowhere"])
def test_a_region_inverted_in_all_images_is_turned_back(where):
    prior, x = images_of()
    signs = np.ones((16, 16), np.float32)
    if where == "lower third":
        signs[11:] = -1
    elif where == "square":
        signs[4:9, 5:12] = -1
    found = common_signs(x * signs.ravel(), prior)
    assert (
        abs((found * signs.ravel()).sum()) == 256
    )  # up to the sign of the whole: this prior's mean is grey


def test_random_signs_of_every_pixel_are_found():
    prior, x = images_of(60)
    signs = np.random.default_rng(1).choice([-1, 1], 256).astype(np.float32)
    found = common_signs(x * signs, prior)
    assert abs((found * signs).sum()) >= 250


def test_joining_maximises_small_problems_of_one_sign_pattern():
    """Brute force: couplings t_p t_q |J| have their maximum at t."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        t = rng.choice([-1.0, 1.0], 9)
        J = np.abs(rng.standard_normal((9, 9)))
        J = (J + J.T) * np.outer(t, t)
        np.fill_diagonal(J, 0)
        assert abs(joined(J.copy()) @ t) == 9
        assert abs(joined.py_func(J.copy()) @ t) == 9


def test_couplings_are_those_of_the_likelihood():
    prior, x = images_of(5, shape=(6, 6))
    K, h = couplings(x, prior)
    B = prior.basis.astype(float)
    P = np.eye(36) - B @ np.diag(prior.variances / (prior.variances + module.FLOOR)) @ B.T

    def cost(t):
        return sum((t * one - prior.mean) @ P @ (t * one - prior.mean) for one in x.astype(float))

    rng = np.random.default_rng(0)
    first, second = (rng.choice([-1.0, 1.0], 36) for _ in range(2))
    gain = (first @ K @ first + 2 * first @ h) - (second @ K @ second + 2 * second @ h)
    assert gain == pytest.approx(cost(second) - cost(first), rel=1e-4)


def test_images_too_large_for_all_pairs_of_pixels_stay_as_they_are(monkeypatch):
    prior, x = images_of(3)
    monkeypatch.setattr(module, "LARGEST", 100)
    assert (common_signs(x, prior) == 1).all()
