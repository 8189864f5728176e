"""The law of weights is told from weights that are noisy and of unknown scale."""

import numpy as np
import pytest

from unveil.encode.weights import sample_weights
from unveil.images.weight_law import likeliest_law
from unveil.scheme import Scheme

LAWS = ["released", "uniform", "dirichlet", "sorted", "convex"]


def told(law, k_private, k_public, scale=1.0, noise=0.0, seed=0):
    """What is made of 2,000 weights of a law, of a seed; wrong in fewer than one of a thousand
    seeds where laws differ."""
    rng = np.random.default_rng(seed)
    weights = sample_weights(Scheme(k_private, k_public, law), 2000, rng)[:, :k_private]
    weights = np.clip(scale * weights + noise * rng.standard_normal(weights.shape), 0.01, 1)
    found = likeliest_law(
        weights.astype(np.float32),
        np.ones(2000, np.float32),
        Scheme(k_private, k_public, "unknown"),
        rng,
    )
    return found.weighting


@pytest.mark.parametrize("scale", [0.7, 1.3])
@pytest.mark.parametrize("k_private", [2, 3])
@pytest.mark.parametrize("law", LAWS)
def test_every_law_is_told_whatever_the_scale(law, k_private, scale):
    # Three of seven weights in descending order are nearly equal: noise of a tenth of them would
    # hide the difference.
    noise = 0.01 if k_private == 2 else 0.005
    assert told(law, k_private, 4, scale, noise=noise) == law


@pytest.mark.parametrize("law", ["released", "uniform", "dirichlet", "half-normal", "convex"])
def test_without_public_images_the_ratio_tells(law):
    assert told(law, 2, 0) == law


def test_slots_that_sum_to_one_hide_their_order():
    """Two weights in descending order are the same pairs: the first of the two names is given."""
    assert told("sorted", 2, 0) == "uniform"


def test_encodings_that_fit_badly_do_not_count():
    rng = np.random.default_rng(0)
    weights = sample_weights(Scheme(2, 4, "uniform"), 3000, rng)[:, :2]
    weights[2000:] = 0.3
    misfit = np.where(np.arange(3000) < 2000, 1.0, 9.0)
    found = likeliest_law(
        weights.astype(np.float32), misfit.astype(np.float32), Scheme(2, 4, "unknown"), rng
    )
    assert found.weighting == "uniform"
