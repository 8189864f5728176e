"""k-means around cliques: exact memberships from overlaps, some wrong; scores as least squares say;
none from nothing."""

import numpy as np
import pytest
from scipy import sparse

from unveil.rivals.cliques.centres import RIDGE, _error, _rest, _scores, _sound, clique_centres


def rng(seed=0):
    return np.random.default_rng(seed)


def planted(k, n, m, wrong=0.0, seed=0):
    draw = rng(seed)
    truth = np.sort(np.argsort(draw.random((m, n)), axis=1)[:, :k], axis=1)
    W = np.zeros((m, n), int)
    np.put_along_axis(W, truth, 1, axis=1)
    S = W @ W.T
    S = np.triu(np.where(draw.random(S.shape) < wrong, draw.integers(0, k + 1, S.shape), S), 1)
    return (S + S.T).astype(np.float32), W


def same(members, W):
    """Whether every column is a true one and every true one a column."""
    found = np.zeros((len(W), members.max() + 1), int)
    np.put_along_axis(found, members, 1, axis=1)
    return {tuple(c) for c in found.T if c.any()} == {tuple(c) for c in W.T}


@pytest.mark.parametrize(
    ("k", "n", "m", "wrong"),
    [(2, 20, 150, 0), (2, 20, 150, 0.01), (3, 100, 600, 0), (4, 100, 700, 0)],
)
def test_overlaps_give_the_subset_of_every_encoding(k, n, m, wrong):
    S, W = planted(k, n, m, wrong)
    for similarity in (S, sparse.csr_array(S)):
        graph = similarity.copy()
        if isinstance(graph, np.ndarray):
            np.minimum(graph, 1, out=graph)
        else:
            graph.data = np.minimum(graph.data, 1)
        centres = clique_centres(similarity, k, rng(), graph=graph)
        assert same(centres.members, W)
        assert centres.sure.mean() > 0.95


def test_noise_far_above_single_similarities_is_averaged_out():
    S, W = planted(2, 20, 600)
    noise = np.triu(0.7 * rng(1).standard_normal(S.shape), 1).astype(np.float32)
    centres = clique_centres(S + noise + noise.T, 2, rng(), n=20)
    found = np.zeros_like(W)
    np.put_along_axis(found, centres.members, 1, axis=1)
    assert np.sort((found.T @ W).max(axis=1) / W.sum(axis=0).mean())[2:].min() > 0.8


def test_scores_are_least_squares_without_an_encodings_own_part():
    S, W = planted(2, 8, 40)
    L = W.astype(np.float32)
    scores = _scores(S, L)
    gram = W.T @ W
    own = np.diag(gram)
    for i in (0, 7, 21):
        expected = (
            np.linalg.solve(gram + RIDGE * own.mean() * np.eye(8), W.T @ S[i]) * own / (own - W[i])
        )
        np.testing.assert_allclose(scores[i], expected, rtol=1e-5)


def test_the_error_is_that_of_the_product_off_the_diagonal():
    S, _ = planted(2, 8, 40, wrong=0.1)
    L = np.abs(rng(2).standard_normal((40, 5))).astype(np.float32)
    rest = _rest(S, L)
    np.testing.assert_allclose(rest, np.where(np.eye(40), 0, S - L @ L.T), atol=1e-5)
    assert _error(S, L) + (S**2).sum() == pytest.approx((rest.astype(float) ** 2).sum(), rel=1e-5)


def test_a_clique_that_is_there_twice_is_kept_once():
    S, W = planted(2, 12, 120)
    both = np.concatenate([W, W[:, :2]], axis=1).astype(np.float32)
    assert len(_sound(S, both)) == 12
    half = W.astype(np.float32)
    mixed = np.zeros((120, 1), np.float32)
    mixed[rng().permutation(120)[:20]] = 1
    assert _sound(S, np.concatenate([half, mixed], axis=1)).tolist() == list(range(12))


def test_nothing_shared_is_no_clique():
    assert clique_centres(np.zeros((30, 30), np.float32), 2, rng()) is None


def test_even_images_get_no_more_encodings_than_they_have():
    draw = rng(3)
    truth = np.concatenate(
        [np.stack([np.arange(20), draw.permutation(20)], axis=1) for _ in range(10)]
    )
    W = np.zeros((200, 20))
    np.put_along_axis(W, truth, 1, axis=1)
    noise = np.triu(0.4 * draw.standard_normal((200, 200)), 1)
    S = (W @ W.T + noise + noise.T).astype(np.float32)
    np.fill_diagonal(S, 0)
    centres = clique_centres(S, 2, rng(), n=20, even=True)
    if centres.scores.shape[1] == 20:
        assert np.bincount(centres.members.ravel()).max() <= 20
