"""Windows wherever they lie: against the formula window by window, and mirror images."""

import numpy as np
import pytest

from unveil.gram.moved_windows import COMMON, SHRINKAGE, SIDE, moved_windows, window_size


def magnitudes(shape, m=60, seed=0):
    return np.abs(np.random.default_rng(seed).standard_normal((m, np.prod(shape)))).astype(
        np.float32
    )


@pytest.mark.parametrize("shape", [(10, 9), (9, 11, 2), (5, 6)])
def test_against_the_formula(shape):
    Y = magnitudes(shape)
    found = moved_windows(Y, shape)
    m, (down, across) = len(Y), found.places
    side = min(SIDE, *shape[:2])
    images = Y.reshape(m, *shape[:2], -1).astype(np.float64)
    every = np.array(
        [[images[:, y : y + side, x : x + side] for x in range(across)] for y in range(down)]
    )
    flat = every.reshape(-1, every[0, 0, 0].size)
    other = every[..., ::-1, :].reshape(flat.shape)
    C = (flat.T @ flat + other.T @ other) / 2 / len(flat)
    values, vectors = np.linalg.eigh(C)
    root = vectors * (np.sqrt(values) / (values + SHRINKAGE * values.mean()))
    v = every.reshape(down, across, m, -1) @ root @ vectors.T
    turned = every[..., ::-1, :].reshape(down, across, m, -1) @ root @ vectors.T
    for y, x in ((0, 0), (down - 1, 0), (down // 2, across - 1)):
        here, there = v[y, x], turned[y, across - 1 - x]
        M = (here.T @ here + there.T @ there) / 2 / m + COMMON * np.eye(len(C))
        u = here @ np.linalg.inv(M)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        if len(C) <= found.values.shape[3]:  # all components are kept
            got = found.values[y, x]
            np.testing.assert_allclose(got @ got.T, u @ u.T, atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(found.values, axis=-1), 1, atol=1e-4)
    assert found.values.size == m * window_size(shape)


def test_mirror_images_have_the_same_windows_but_for_signs():
    shape = (10, 12, 2)
    Y = magnitudes(shape)
    mirrored = Y.reshape(-1, *shape)[:, :, ::-1].reshape(Y.shape)
    found = moved_windows(np.concatenate([Y, mirrored]), shape)
    for y, x in ((0, 0), (1, 3), (2, 4)):
        one, other = found.at(y, x, False), found.at(y, x, True)
        np.testing.assert_allclose(one[60:], other[:60], atol=2e-3)
