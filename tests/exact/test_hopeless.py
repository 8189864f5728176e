"""Whatever comes in, words come out: small, degenerate and random inputs, and invariances."""

from __future__ import annotations

import numpy as np
import pytest

import unveil
from unveil.checks import InputError
from unveil.exact import recover_exact


def records(rng: np.random.Generator, n: int, d: int, kind: str) -> np.ndarray:
    x = rng.standard_normal((n, d))
    return {
        "generic": x,
        "whole": np.round(2 * x),
        "yes or no": (x > 0).astype(float),
        "all alike": np.repeat(x[:1], n, axis=0),
        "zeros": 0 * x,
        "one value per record": np.repeat(x[:, :1], d, axis=1),
    }[kind]


@pytest.mark.parametrize("k_public", [0, 1])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "kind", ["generic", "whole", "yes or no", "all alike", "zeros", "one value per record"]
)
def test_small_inputs_end_in_a_recovery_or_in_an_error_with_a_cure(
    kind: str, k: int, k_public: int
) -> None:
    rng = np.random.default_rng([k, k_public, len(kind)])
    for _ in range(2):
        n, d, m = (int(v) for v in rng.integers(1, 13, 3))
        x, public = records(rng, n, d, kind), records(rng, 6, d, kind)
        z = np.stack([x[rng.choice(n, k, replace=n < k)].sum(axis=0) for _ in range(m)])
        if k_public:
            z = z + public[rng.integers(6, size=m)]
        y = np.abs(z / np.sqrt(k + k_public)).astype(np.float32)
        encodings = unveil.Encodings(y, unveil.Scheme(k, k_public), pixel_rms=None)
        try:
            recovery = recover_exact(encodings, public if k_public else None, rng=0)
        except InputError as error:
            words = str(error)
        else:
            words = recovery.explanation
            assert np.isfinite(recovery.vectors).all()
        assert len(words) > 20


@pytest.mark.parametrize("d", [3, 300])
@pytest.mark.parametrize("k", [2, 3])
def test_nothing_is_verified_on_pure_noise(k: int, d: int) -> None:
    y = np.abs(np.random.default_rng(k).standard_normal((60, d))).astype(np.float32)
    recovery = recover_exact(unveil.Encodings(y, unveil.Scheme(k), pixel_rms=None), rng=0)
    assert not recovery.verified.any()


def test_order_units_and_signs_of_columns_change_nothing() -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((20, 12)).astype(np.float32)
    rows = np.array([rng.choice(20, 2, replace=False) for _ in range(140)])
    turn = np.where(rng.random(12) < 0.5, -1, 1).astype(np.float32)
    order, columns = rng.permutation(140), rng.permutation(12)

    def magnitudes(x: np.ndarray, scale: float) -> set[tuple[float, ...]]:
        y = scale * np.abs(x[rows].sum(axis=1)) / np.sqrt(2)
        y = y[order][:, columns].astype(np.float32)
        recovery = recover_exact(unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), rng=1)
        assert recovery.verified.all()
        assert len(recovery) == 20
        return {tuple(v) for v in np.round(np.abs(recovery.vectors) / scale, 3)}

    truth = {tuple(v) for v in np.round(np.abs(x[:, columns]), 3)}
    for same in (magnitudes(x, 1.0), magnitudes(x * turn, 1.0), magnitudes(x, 64.0)):
        a, b = np.array(sorted(same)), np.array(sorted(truth))
        assert np.abs(a - b).max() < 2e-3
