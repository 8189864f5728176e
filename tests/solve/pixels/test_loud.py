"""Loud noise: near to least squares with all signs known, and honest about the noise."""

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.folded import information
from unveil.solve.pixels import loud
from unveil.solve.pixels.loud import Design, solve_loud


def noisy(k, noise, n=30, m=400, d=60, seed=0):
    """(x, members, signed sums with noise), unit weights."""
    rng = np.random.default_rng(seed)
    sim = simulate(Scheme(k), n, m=m, d=d, rng=seed)
    members = sim.selection.private
    mix = sim.private[members].sum(axis=1) + noise * rng.standard_normal((m, d))
    return sim.private.astype(float), members, mix


@pytest.mark.parametrize(("k", "noise"), [(2, 0.28), (2, 0.57), (3, 0.35)])
def test_close_to_least_squares_with_signs_known(k, noise):
    x, members, mix = noisy(k, noise)
    y = np.abs(mix).astype(np.float32)
    # Half as much noise again is assumed to begin with.
    first = solve_loud(y, members, 30, 1.5 * noise, np.random.default_rng(0), fine=False)
    out = solve_loud(y, members, 30, first.noise, np.random.default_rng(0))
    design = Design(members, 30)
    best = design.fit @ mix
    signs = np.sign((out.x * x).sum(axis=0))
    ratio = np.sqrt(np.mean((out.x * signs - x) ** 2) / np.mean((best - x) ** 2))
    assert ratio < 1.3
    assert out.noise == pytest.approx(noise, rel=0.06)
    # What is said of the loss: no more than there is, and most of it.
    told = information(y, (design.W @ x).astype(np.float32), noise**2)
    assert 1.0 < told**-0.5 < ratio < 1.25 * told**-0.5


def test_other_rows_alone_predict_a_row():
    """Leverage takes a row's own part out exactly."""
    _, members, mix = noisy(2, 0.3, n=8, m=40, d=5)
    design = Design(members, 8)
    s = mix.astype(np.float32)
    mean, variance = design.others(design.fit @ s, s, 0.3)
    without = Design(np.delete(members, 7, axis=0), 8)
    x = without.fit @ np.delete(s, 7, axis=0)
    np.testing.assert_allclose(mean[7], x[members[7]].sum(axis=0), atol=1e-4)
    w = np.zeros(8)
    w[members[7]] = 1
    assert variance[7, 0] == pytest.approx(0.09 * (1 + w @ without.C @ w), rel=1e-4)


def test_a_vector_that_no_row_uses_stays_zero():
    _, members, mix = noisy(2, 0.4, n=10, m=80, d=10)
    y = np.abs(mix).astype(np.float32)
    out = solve_loud(y, members, 11, 0.4, np.random.default_rng(0))
    assert np.isfinite(out.x).all()
    assert np.abs(out.x[10]).max() == 0


def test_encodings_without_noise_leave_a_number_and_not_less_than_nothing():
    # What is left of exact encodings is rounding, and a difference of large squares in float32 has
    # either sign: its root was no number, and the next round had no start.
    _, members, mix = noisy(2, 0.0, n=24, m=360, d=64)
    y, found = np.abs(mix).astype(np.float32), 0.05
    for seed in range(4):
        found = solve_loud(y, members, 24, found, np.random.default_rng(seed)).noise
        assert 0 < found < 0.05


def test_a_leading_vector_that_lapack_does_not_find_is_found_among_all(monkeypatch):
    """Where the largest values are equal to rounding, it may return none at the place asked for."""
    whole = loud.eigh

    def finds_none(matrix, subset_by_index=None, **options):
        values, vectors = whole(matrix, **options)
        return (values, vectors) if subset_by_index is None else (values[:0], vectors[:, :0])

    monkeypatch.setattr(loud, "eigh", finds_none)
    matrix = np.diag([3.0, 5.0, 1.0]).astype(np.float32)
    np.testing.assert_array_equal(np.abs(loud._leading(matrix)), [0, 1, 0])
