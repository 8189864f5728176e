"""What private images have in common: against the plain double sum, and blind to a few that are
inverted."""

import numpy as np
import pytest

from unveil.images.own_mean import common_share, consensus, turned


def images(n=30, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    mean = rng.standard_normal(50)
    mean *= np.sqrt(50 * share) / np.linalg.norm(mean)
    return mean, (mean + np.sqrt(1 - share) * rng.standard_normal((n, 50))).astype(np.float32)


def test_the_share_is_the_mean_product_of_different_images_over_that_with_themselves():
    _, x = images(6)
    assert common_share(x + np.arange(6)[:, None]) == pytest.approx(common_share(x), rel=1e-4)
    x = x - x.mean(axis=1, keepdims=True)
    pairs = [x[i] @ x[j] for i in range(6) for j in range(6) if i != j]
    own = [row @ row for row in x]
    assert common_share(x) == pytest.approx(np.mean(pairs) / np.mean(own), rel=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_the_share_needs_no_correction_for_few_images(share):
    found = [common_share(images(8, share, seed)[1]) for seed in range(200)]
    assert np.mean(found) == pytest.approx(share, abs=0.03)


def test_magnitudes_of_images_that_share_nothing_are_bright_and_share_nothing():
    """So come back images whose dark regions are inverted: taken for faces they would stay so."""
    x = np.abs(images(60, 0.0)[1])
    assert common_share(x) < 0.05
    assert np.mean(x[0] * x[1]) > 0.4 * np.mean(x[0] ** 2)


def test_one_image_has_nothing_in_common_and_empty_ones_neither():
    assert common_share(np.ones((1, 5), np.float32)) == 0
    assert common_share(np.zeros((3, 5), np.float32)) == 0


def test_a_minority_of_negatives_is_turned():
    mean, x = images(40)
    wrong = x.copy()
    wrong[:8] *= -1
    np.testing.assert_array_equal(turned(wrong), x)
    assert common_share(turned(wrong)) == pytest.approx(common_share(x))
    assert np.corrcoef(consensus(turned(wrong)), mean)[0, 1] > 0.9


def test_images_without_a_majority_stay_as_they_are():
    _, x = images(60, 0.0)
    np.testing.assert_array_equal(turned(x), x)
