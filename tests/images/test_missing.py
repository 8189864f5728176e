"""Images that were missed: found in the residual, given to the columns that fit worst; repeats told
apart."""

import numpy as np
from scipy import sparse

from unveil.gram.cosines import Alike
from unveil.gram.windows import window_energies
from unveil.images import missing as module
from unveil.images.missing import POOR, _taken_over, regrow, repeated_images
from unveil.images.prior import image_prior


def problem(n=10, m=400, seed=0):
    """Prior, images, true weights and the similarity of encodings of smooth images, two private
    ones in each."""
    rng = np.random.default_rng(seed)
    prior = image_prior((16, 16))
    images = prior.draw(n, rng)
    weights = rng.dirichlet(np.full(3, 8.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(
        L, rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], weights[:, :2], axis=1
    )
    z = L @ images + weights[:, 2:] * prior.draw(m, rng)
    return prior, images, L, window_energies(np.abs(z).astype(np.float32), (16, 16))


def at(alike, rows):
    """The same of some encodings."""
    return Alike(
        np.ascontiguousarray(alike.cosines[np.ix_(rows, rows)]), alike.lengths[rows],
        alike.level[rows], alike.level_norm,
    )  # fmt: skip


def missing(columns, labels=None, rows=None, seed=0):
    """`regrow` where the images of `columns` are unknown: their weights zero."""
    _, _, L, alike = problem()
    bad = np.isin(np.arange(10), columns)
    rows = np.arange(400) if rows is None else rows
    misfit = np.where(bad, 2.0 + np.arange(10), 1.0)
    new = regrow(
        at(alike, rows), sparse.csr_array(np.where(bad, 0, L)[rows]), bad, misfit,
        np.ones(len(rows), np.float32), 2, 1 / 3, None if labels is None else labels[rows],
        np.random.default_rng(seed),
    )  # fmt: skip
    return new, L


def test_missed_images_are_found_in_the_residual_one_column_each():
    new, L = missing([2, 7])
    assert sorted(column for column, _ in new) == [2, 7]
    share = np.array([(L[cluster] > 0).mean(axis=0)[[2, 7]] for _, cluster in new])
    assert (share.max(axis=1) > 0.9).all()
    assert set(share.argmax(axis=1)) == {0, 1}
    assert all(len(cluster) <= int(0.6 * 2 * 400 / 10) for _, cluster in new)


def test_images_that_share_a_mean_are_not_repeats_of_each_other():
    prior, images, L, _ = problem()
    common = 5 * prior.draw(1, np.random.default_rng(3))[0]
    alike = (images + common).astype(np.float32)
    weights = sparse.csr_array(L)
    assert repeated_images(alike, weights, prior).any()
    assert not repeated_images(alike, weights, prior, common).any()


def test_the_worst_column_is_taken_over_first():
    new, _ = missing([2, 7])
    assert [column for column, _ in new] == [7, 2]


def test_labels_keep_new_clusters_to_a_class():
    _, _, L, _ = problem()
    classes = np.zeros((10, 2), np.float32)
    classes[np.arange(10), np.arange(10) % 2] = 1
    labels = L @ classes
    new, _ = missing([2, 7], labels)
    assert new
    for _, cluster in new:
        assert (labels[cluster] > 0).all(axis=0).any()
        assert (L[cluster] > 0).mean(axis=0)[[2, 7]].max() > 0.9


def test_where_all_is_explained_nothing_new_is_found():
    new, _ = missing([])
    assert new == []
    _, _, L, alike = problem()
    bad = np.arange(11) == 10
    weights = sparse.csr_array(np.column_stack([L, np.zeros(400)]))
    rng = np.random.default_rng(0)
    rows = np.ones(400, np.float32)
    assert regrow(alike, weights, bad, np.ones(11), rows, 2, 0.1, None, rng) == []


def test_order_moves_clusters_and_the_same_generator_gives_the_same():
    one, _ = missing([2, 7], seed=3)
    other, _ = missing([2, 7], seed=3)
    assert [(c, rows.tolist()) for c, rows in one] == [(c, rows.tolist()) for c, rows in other]
    order = np.random.default_rng(1).permutation(400)
    moved, _ = missing([2, 7], rows=order)
    for (_, a), (_, b) in zip(
        sorted(one, key=lambda x: x[0]), sorted(moved, key=lambda x: x[0]), strict=True
    ):
        assert len(np.intersect1d(a, order[b])) > 0.8 * len(a)


def test_a_repeat_with_less_weight_is_a_duplicate_and_the_lighter_one_goes():
    prior, images, L, _ = problem()
    rng = np.random.default_rng(1)
    again = images[3] + 0.1 * rng.standard_normal(256).astype(np.float32)
    both = np.vstack([images, again]).astype(np.float32)
    weights = sparse.csr_array(np.column_stack([L, 0.5 * L[:, 3]]))
    assert np.flatnonzero(repeated_images(both, weights, prior)).tolist() == [10]
    heavier = sparse.csr_array(np.column_stack([L, 1.5 * L[:, 3]]))
    assert np.flatnonzero(repeated_images(both, heavier, prior)).tolist() == [3]
    order = rng.permutation(11)
    moved = repeated_images(both[order], sparse.csr_array(weights.toarray()[:, order]), prior)
    assert order[np.flatnonzero(moved)].tolist() == [10]


def test_of_equal_repeats_one_stays_and_the_negative_is_no_repeat():
    prior, images, L, _ = problem()
    three = images[[3, 3, 3]]
    assert repeated_images(three, sparse.csr_array(L[:, [3, 3, 3]]), prior).tolist() == [
        False,
        True,
        True,
    ]
    pair = np.vstack([images[3], -images[3]])
    assert not repeated_images(pair, sparse.csr_array(L[:, [3, 3]]), prior).any()
    assert not repeated_images(images, sparse.csr_array(L), prior).any()


def test_a_cluster_a_bad_column_has_already_is_left_to_it():
    weights = np.zeros((30, 4), np.float32)
    weights[:10, 1] = 0.5
    clusters = [np.arange(0, 8), np.arange(10, 18), np.arange(20, 28)]
    found = _taken_over(
        clusters, sparse.csr_array(weights > 0), np.array([1, 2, 3]), np.array([0.0, 9.0, 1.0, 5.0])
    )
    assert [(column, rows.tolist()) for column, rows in found] == [
        (3, clusters[1].tolist()),
        (2, clusters[2].tolist()),
    ]
    assert (
        _taken_over(
            clusters, sparse.csr_array(weights > 0), np.array([1]), np.array([0.0, 9.0, 1.0, 5.0])
        )
        == []
    )


def test_encodings_that_fit_badly_are_looked_at_whatever_weights_they_have(monkeypatch):
    _, _, L, alike = problem(m=40)
    bad = np.arange(10) == 4
    of_rows = np.where(np.arange(40) % 5 == 0, 1.1 * POOR, 1.0).astype(np.float32)
    seen = []
    monkeypatch.setattr(
        module, "leftover_clusters", lambda *given, **options: seen.append((given, options)) or []
    )
    rng = np.random.default_rng(0)
    assert regrow(alike, sparse.csr_array(L), bad, np.ones(10), of_rows, 2, 0.3, None, rng) == []
    (((_, squares, _, settled, members), options),) = seen
    kept = L[:, ~bad]
    np.testing.assert_allclose(squares, kept**2)
    full = (kept > 0.15).sum(axis=1) == 2
    assert 0 < full.sum() < 40
    np.testing.assert_array_equal(settled, full & (of_rows == 1))
    np.testing.assert_array_equal(members, kept > 0.25 * 0.3)
    assert options["most"] == 1
