"""Squares whitened by their spectrum: against the formula frequency by frequency, and what shifts
do."""

import numpy as np
import pytest

from unveil.gram.cosines import UNIT
from unveil.gram.stationary import ABOVE, FAINT, LEAST, RIDGE, stationary, stationary_energies

SHAPE = (8, 6, 2)


def rows(m=30, shape=SHAPE, seed=0):
    return np.random.default_rng(seed).standard_normal((m, int(np.prod(shape)))).astype(np.float32)


def plain(values, shape):
    """All frequencies written out, one after another."""
    F = values.reshape(len(values), *shape[:2], -1).astype(np.float64)
    F = F - F.mean(axis=0)
    F = F - F.mean(axis=(1, 2), keepdims=True)
    spectrum = np.fft.fft2(F, axes=(1, 2))
    half = shape[1] // 2 + 1
    parts = {}
    for y in range(shape[0]):
        for x in range(shape[1]):
            s = spectrum[:, y, x]
            parts[y, x] = np.linalg.eigh(s.T @ s.conj() / len(s))
    powers = np.array([parts[y, x][0] for y in range(shape[0]) for x in range(half)])
    noise = ABOVE * np.quantile(powers, FAINT, axis=0)
    out = np.empty_like(spectrum)
    for (y, x), (power, vectors) in parts.items():
        signal = np.maximum(np.maximum(power - noise, LEAST * power), 0)
        counts = np.sqrt(signal) / (power + RIDGE * powers.mean() + 1e-12)
        out[:, y, x] = spectrum[:, y, x] @ (vectors * counts @ vectors.conj().T).T
    Z = np.fft.ifft2(out, axes=(1, 2)).real
    return Z / np.sqrt(np.mean(Z**2))


@pytest.mark.parametrize("shape", [SHAPE, (6, 8)])
def test_against_the_formula_frequency_by_frequency(shape):
    values = rows(shape=shape)
    found, _ = stationary(values, shape)
    np.testing.assert_allclose(found, plain(values, shape), atol=2e-3)
    assert np.mean(found**2) == pytest.approx(1, rel=1e-4)


def test_shifts_round_the_edge_commute_with_it():
    values = rows()
    turned = np.roll(values.reshape(-1, *SHAPE), (2, -1), axis=(1, 2)).reshape(len(values), -1)
    (one, mean), (other, other_mean) = (stationary(v, SHAPE) for v in (values, turned))
    np.testing.assert_allclose(np.roll(one, (2, -1), axis=(1, 2)), other, atol=1e-4)
    np.testing.assert_allclose(np.roll(mean, (2, -1), axis=(0, 1)), other_mean, atol=1e-4)


def test_unit_and_order_say_nothing_and_equal_encodings_are_no_error():
    values = np.abs(rows())
    (one, _), (other, _) = stationary(values, SHAPE), stationary(3 * values[::-1], SHAPE)
    np.testing.assert_allclose(other, one[::-1], atol=1e-3)
    assert np.isfinite(stationary(np.ones_like(values), SHAPE)[0]).all()


def test_energies_do_not_ask_how_bright_an_encoding_is():
    rng = np.random.default_rng(0)
    Y = rng.random((20, 64)).astype(np.float32)
    bright = Y * rng.uniform(1, 3, (20, 1)).astype(np.float32)
    one, other = stationary_energies(Y, (8, 8)), stationary_energies(bright, (8, 8))
    np.testing.assert_allclose(one.cosines, other.cosines, atol=0.01 * UNIT)
    np.testing.assert_allclose(one.lengths, other.lengths, rtol=1e-2)
    assert one.level.shape == (20,)
