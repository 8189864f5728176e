"""Passes over the public vectors: against a full sort, in any blocks, from a file."""

import numpy as np
import pytest

from unveil.supports.folded.screen import CLIP, pixel_weights, screen, top_others, top_products
from unveil.supports.folded.survey import survey_public


def instance(n=500, m=20, d=60):
    rng = np.random.default_rng(2)
    return np.abs(rng.standard_normal((m, d))).astype(np.float32), rng.standard_normal(
        (n, d)
    ).astype(np.float32)


@pytest.mark.parametrize("kept", [1, 7, 128, 129, 300])
@pytest.mark.parametrize("columns", [1, 64, 4096])
def test_the_largest_products_are_those_of_a_full_sort(kept, columns):
    Y, P = instance()
    values, indices = top_products(Y, survey_public(P, columns), kept)
    product = Y @ P.T
    for t in range(len(Y)):
        assert set(indices[t].tolist()) == set(np.argsort(-product[t])[:kept].tolist())
        np.testing.assert_allclose(values[t], product[t, indices[t]], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("step", [1, 3])
def test_the_screen_equals_the_formula(step):
    Y, P = instance()
    pool = screen(Y, survey_public(P, 100), 30, step=step)
    power = float((P.astype(np.float64) ** 2).mean())
    P = P[:, ::step]
    for t, y in enumerate(Y[:, ::step].astype(np.float64)):
        z = np.minimum(y**2 / np.mean(y**2), CLIP)
        score = np.minimum(P.astype(np.float64) ** 2, CLIP * power) @ (z - z.mean())
        assert pool[t].tolist() == np.argsort(-score)[:30].tolist()


@pytest.mark.parametrize("kept", [20, 200])
def test_unusable_vectors_never_come_back(kept):
    Y, P = instance(n=150)
    P[::2] = 0
    P[1] = P[3]
    public = survey_public(P, 40)
    values, indices = top_products(Y, public, kept)
    found = indices[indices >= 0]
    assert public.usable[found].all()
    assert ((indices >= 0).sum(axis=1) == min(kept, public.count)).all()
    assert (values[indices < 0] == -np.inf).all()
    assert screen(Y, public, 200).shape == (20, public.count)


def test_weights_have_mean_zero_and_an_encoding_of_zeros_says_nothing():
    Y, _ = instance()
    Y[3] = 0
    z = pixel_weights(Y)
    np.testing.assert_allclose(z.mean(axis=1), 0, atol=1e-5)
    assert (z[3] == 0).all()


def test_a_memory_mapped_file_gives_the_same(tmp_path):
    Y, P = instance()
    np.save(tmp_path / "public.npy", P)
    mapped = np.load(tmp_path / "public.npy", mmap_mode="r")
    np.testing.assert_array_equal(
        screen(Y, survey_public(mapped, 64), 9), screen(Y, survey_public(P, 64), 9)
    )


def test_members_are_not_among_the_others_and_the_best_come_first():
    rng = np.random.default_rng(0)
    P = rng.standard_normal((12, 40)).astype(np.float32)
    rows = rng.standard_normal((3, 40)).astype(np.float32)
    members = np.array([[0, 1], [2, 3], [4, -1]])
    values, indices = top_others(rows, survey_public(P, 5), members, 4)
    product = rows @ P.T
    for t in range(3):
        others = [i for i in np.argsort(-product[t]) if i not in members[t]]
        assert indices[t].tolist() == others[:4]
        np.testing.assert_allclose(values[t], product[t, indices[t]], rtol=1e-5)
