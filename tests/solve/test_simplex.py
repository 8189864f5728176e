"""Corners of a simplex: exact where encodings are, as good as least squares with all known under
noise."""

import numpy as np
import pytest

from unveil.solve.simplex import find_corners


def mixtures(n, m, d, k, *, alpha=1.0, noise=0.0, seed=0, records=None):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) if records is None else records
    chosen = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    W = np.zeros((m, n))
    np.put_along_axis(W, chosen, rng.dirichlet(np.full(k, alpha), m), axis=1)
    y = W @ x + noise * rng.standard_normal((m, d))
    return x, W, y.astype(np.float32).astype(np.float64)


def nearest(found, x):
    apart = ((found.values[:, None] - x) ** 2).mean(axis=2)
    return apart.argmin(axis=0), np.sqrt(apart.min(axis=0))


@pytest.mark.parametrize(
    ("k", "alpha", "m"), [(2, 1.0, 200), (2, 0.2, 300), (2, 8.0, 200), (3, 1.0, 200), (4, 1.0, 300)]
)
def test_every_corner_and_every_weight(k, alpha, m):
    x, W, y = mixtures(20, m, 40, k, alpha=alpha)
    found = find_corners(y, k)
    assert found.exact
    assert found.fits.all()
    which, error = nearest(found, x)
    assert sorted(which) == list(range(20))
    assert error.max() < 1e-4
    assert np.abs(found.matrix.toarray()[:, which] - W).max() < 1e-4


def test_records_that_sum_to_zero_are_corners_too():
    rng = np.random.default_rng(1)
    records = rng.standard_normal((12, 11))
    records -= records.mean(axis=0)
    x, _, y = mixtures(12, 150, 11, 2, records=records)
    found = find_corners(y, 2)
    assert len(found.values) == 12
    assert nearest(found, x)[1].max() < 1e-4


@pytest.mark.parametrize("k", [2, 3])
def test_noise_costs_no_more_than_with_everything_known(k):
    x, W, y = mixtures(20, 300, 200, k, noise=0.05)
    found = find_corners(y, k)
    assert not found.exact
    assert found.noise == pytest.approx(0.05, rel=0.05)
    least_squares = np.linalg.lstsq(W, y, rcond=None)[0]
    floor = np.sqrt(np.mean((least_squares - x) ** 2))
    assert np.sqrt(np.mean(nearest(found, x)[1] ** 2)) < 1.05 * floor


def test_damaged_encodings_do_not_hide_the_others():
    x, _, y = mixtures(15, 200, 60, 2)
    y[:4] += np.random.default_rng(5).standard_normal((4, 60))
    found = find_corners(y, 2)
    assert found.fits[4:].mean() > 0.97
    assert nearest(found, x)[1].max() < 1e-3


def test_what_is_no_mixture_has_no_corners():
    rng = np.random.default_rng(1)
    found = find_corners(rng.standard_normal((60, 20)), 2)
    assert found is None or found.fits.mean() < 0.5
    hidden = np.abs(mixtures(10, 150, 40, 2)[2])
    found = find_corners(hidden, 2)
    assert found is None or found.fits.mean() < 0.5
    assert find_corners(np.zeros((5, 4)), 2) is None


def test_the_number_of_corners_can_be_told():
    y = mixtures(10, 150, 30, 2, noise=0.02)[2]
    assert len(find_corners(y, 2, 10).values) == 10
    assert find_corners(y[:10], 2, 10) is None
