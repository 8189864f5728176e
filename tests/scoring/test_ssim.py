"""SSIM against its definition, PSNR by hand."""

import sys

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.scoring.images import psnr, ssim

SHAPES = [(9, 12, 3), (7, 7, 1), (16, 8), (32, 32, 3)]


def images(n, shape, seed=0):
    """Smooth pictures in [−1, 1], so that SSIM has something to see."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(np.cumsum(rng.standard_normal((n, *shape)), axis=1), axis=2)
    return (x / np.abs(x).max(axis=tuple(range(1, x.ndim)), keepdims=True)).astype(np.float32)


def twin(a, b):
    """SSIM of two images by its definition, window by window."""
    values = []
    a, b = ((np.atleast_3d(v).astype(np.float64) + 1) / 2 for v in (a, b))
    for i in range(a.shape[0] - 6):
        for j in range(a.shape[1] - 6):
            for c in range(a.shape[2]):
                p, q = (v[i : i + 7, j : j + 7, c].ravel() for v in (a, b))
                (v, cov), (_, w) = np.cov(p, q)
                top = (2 * p.mean() * q.mean() + 0.01**2) * (2 * cov + 0.03**2)
                values.append(top / ((p.mean() ** 2 + q.mean() ** 2 + 0.01**2) * (v + w + 0.03**2)))
    return np.mean(values)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_ssim_equals_its_definition(shape):
    a, b = images(3, shape), images(3, shape, 1)
    np.testing.assert_allclose(
        ssim(a, b, shape), [twin(x, y) for x, y in zip(a, b, strict=True)], atol=1e-10
    )


def test_negatives_and_inverted_halves_count_as_what_they_are():
    """Both were good images to SSIM on [−1, 1]; a little more light is still a good one."""
    a = 0.8 * images(4, (16, 16), 5)
    half = a.copy()
    half[:, :, 8:] *= -1
    assert ssim(a, -a, (16, 16)).max() < 0
    assert ssim(a, half, (16, 16)).max() < 0.6
    assert ssim(a, a + 0.1, (16, 16)).min() > 0.9


def test_psnr_by_hand():
    a = np.zeros((4, 7, 7))
    b = a.copy()
    b[1] = 0.2  # mean square 0.04 of a peak square of 4: a factor of 100
    b[2, 0, 0] = 1.0
    b[3] = 5.0  # clipped to 1
    np.testing.assert_allclose(
        psnr(a, b, (7, 7)), [100, 20, 10 * np.log10(4 * 49), 10 * np.log10(4)], rtol=1e-6
    )


def test_without_scikit_image_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.metrics", None)
    with pytest.raises(InputError, match=r"pip install 'unveil\[images\]'"):
        ssim(images(1, (8, 8)), images(1, (8, 8)), (8, 8))
