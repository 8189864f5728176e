"""Greedy cliques: those of planted images come back, dense or sparse, and none is a repeat."""

import numpy as np
from scipy import sparse

from unveil.rivals.cliques.greedy import LEAST, greedy_cliques, likeness


def rng(seed=0):
    return np.random.default_rng(seed)


def planted(k=2, n=20, m=200, wrong=0.0, seed=0):
    """Who shares an image, 0 or 1, some of it wrong; and the encodings of each image."""
    draw = rng(seed)
    W = np.zeros((m, n), int)
    np.put_along_axis(W, np.argsort(draw.random((m, n)), axis=1)[:, :k], 1, axis=1)
    S = np.minimum(W @ W.T, 1)
    S = np.triu(np.where(draw.random(S.shape) < wrong, 1 - S, S), 1)
    return (S + S.T).astype(np.float32), {
        frozenset(np.flatnonzero(column).tolist()) for column in W.T
    }


def sets(cliques):
    return [frozenset(clique.tolist()) for clique in cliques]


def test_the_cliques_of_all_images_come_back():
    for k, n, m in ((2, 20, 200), (3, 40, 400), (4, 60, 600)):
        S, truth = planted(k, n, m)
        found = sets(greedy_cliques(S, k, rng()))
        assert len(found) == len(set(found))
        assert len(truth & set(found)) >= 0.95 * n
        assert len(found) <= 1.05 * n


def test_dense_and_sparse_similarities_give_the_same_cliques():
    S, _ = planted()
    assert sets(greedy_cliques(S, 2, rng(1))) == sets(
        greedy_cliques(sparse.csr_array(S), 2, rng(1))
    )


def test_the_unit_of_similarity_says_nothing():
    S, _ = planted()
    assert sets(greedy_cliques(S, 2, rng(1))) == sets(greedy_cliques(64 * S, 2, rng(1)))


def test_one_percent_of_wrong_entries_does_no_harm():
    S, truth = planted(wrong=0.01)
    assert len(truth & set(sets(greedy_cliques(S, 2, rng())))) >= 18


def test_no_more_and_no_larger_ones_than_asked_for():
    S, truth = planted()
    found = sets(greedy_cliques(S, 2, rng(), size=8, most=5))
    assert len(found) == 5
    assert all(
        len(clique) <= 8 and any(len(clique & image) >= 7 for image in truth) for clique in found
    )


def test_cliques_that_are_there_are_not_found_again():
    S, truth = planted()
    have = [np.array(sorted(image)) for image in sorted(truth, key=min)[:6]]
    found = greedy_cliques(S, 2, rng(), have=have)
    assert not set(sets(found)) & set(sets(have))
    assert len(set(sets(found)) & truth) >= 12


def test_pairs_and_nothing_are_no_cliques():
    pairs = np.kron(np.eye(15), [[0, 1], [1, 0]]).astype(np.float32)
    assert greedy_cliques(pairs, 2, rng()) == []
    assert greedy_cliques(np.zeros((30, 30), np.float32), 2, rng()) == []
    triangles = np.kron(np.eye(10), 1 - np.eye(LEAST)).astype(np.float32)
    assert (
        sorted(map(sorted, sets(greedy_cliques(triangles, 2, rng()))))
        == np.arange(30).reshape(10, 3).tolist()
    )


def test_likeness_leaves_an_encoding_itself_out():
    S, _ = planted()
    clique = np.array([0, 3, 7, 9])
    mean, within = likeness(S, clique)
    for i in range(20):
        others = [j for j in clique if j != i]
        assert np.isclose(mean[i], S[i, others].mean())
    assert np.isclose(within, mean[clique].mean())


def test_progress_counts_the_cliques():
    S, _ = planted()
    seen = []
    found = greedy_cliques(S, 2, rng(), most=50, progress=lambda *at: seen.append(at))
    assert seen == [("cliques", c + 1, 50) for c in range(len(found))]
