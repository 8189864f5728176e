"""Rows that come epoch by epoch are told by the noise that they share, and no others are."""

import numpy as np
import pytest

import unveil
from unveil.images.row_order import evidence, order_of_noise

N = 20


@pytest.fixture(scope="module")
def magnitudes():
    rng = np.random.default_rng(0)
    scheme = unveil.Scheme(2, 4, "released", pairing="epochs")
    private = np.repeat(rng.uniform(-1, 1, (N, 64)), 16, axis=1)
    public = rng.uniform(-1, 1, (2000, 1024))
    sim = unveil.simulate(scheme, private=private, public=public, m=30 * N, rng=1)
    return np.abs(sim.encodings.values)


def test_epochs_are_told_by_noise_and_have_n_rows_each(magnitudes):
    found = order_of_noise(magnitudes, N, 2)
    assert found is not None
    np.testing.assert_array_equal(found.block, np.arange(30 * N) // N)
    assert (found.n, found.k) == (N, 2)


def test_rows_in_no_order_or_blocks_of_another_length_are_none(magnitudes):
    """By chance one in a million: five standard deviations."""
    shuffled = np.random.default_rng(2).permutation(magnitudes)
    assert order_of_noise(shuffled, N, 2) is None
    assert order_of_noise(magnitudes, N - 1, 2) is None
    assert order_of_noise(magnitudes, N + 1, 2) is None
    assert order_of_noise(magnitudes[: 3 * N], N, 2) is None


def test_the_evidence_is_in_standard_deviations():
    """Of 200 draws of nothing the deviation is one, up to a tenth: 2.5 of its own, one in 80."""
    rng = np.random.default_rng(0)
    values = [
        evidence([rng.standard_normal(300 - lag) for lag in range(1, 10)], 10) for _ in range(200)
    ]
    assert np.std(values) == pytest.approx(1, abs=0.13)
    assert abs(np.mean(values)) < 0.25


def test_encodings_that_are_all_the_same_have_no_order():
    assert order_of_noise(np.ones((200, 16), np.float32), 10, 2) is None
