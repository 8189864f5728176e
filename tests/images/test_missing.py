"""Images that were missed: found in the residual, given to the columns that fit worst; repeats told
apart."""

import numpy as np
from scipy import sparse

from unveil.images import missing as module
from unveil.images.missing import POOR, _taken_over, regrow, repeated_images
from unveil.images.prior import image_prior
from unveil.images.reweigh import whiten


def problem(n=10, m=400, public=1, seed=0):
    """Prior, images, true weights and signed encodings of smooth images, two private ones in
    each."""
    rng = np.random.default_rng(seed)
    prior = image_prior((16, 16))

    images = prior.draw(n, rng)
    weights = rng.dirichlet(np.full(2 + public, 8.0), m).astype(np.float32)
    L = np.zeros((m, n), np.float32)
    np.put_along_axis(
        L, rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2], weights[:, :2], axis=1
    )
    z = L @ images
    for column in weights.T[2:]:
        z += column[:, None] * prior.draw(m, rng)
    return prior, images, L, z.astype(np.float32)


def missing(columns, labels=None, rows=None, seed=0):
    """`regrow` where the images of `columns` are unknown: their weights zero, their images the
    mean."""
    prior, images, L, z = problem()
    bad = np.zeros(10, bool)
    bad[columns] = True
    weights, known = np.where(bad, 0, L), np.where(bad[:, None], prior.mean, images)
    rows = np.arange(len(z)) if rows is None else rows
    misfit = np.where(bad, 2.0 + np.arange(10), 1.0)
    new = regrow(
        z[rows], sparse.csr_array(weights[rows]), known.astype(np.float32), bad, misfit, np.ones(len(rows), np.float32), prior,
        2, 1 / 3, None if labels is None else labels[rows], np.random.default_rng(seed),
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
    prior, images, L, z = problem(public=0)
    bad = np.zeros(11, bool)
    bad[10] = True
    weights = sparse.csr_array(np.column_stack([L, np.zeros(400)]))
    known = np.vstack([images, prior.mean])
    found = regrow(
        z,
        weights,
        known,
        bad,
        np.ones(11),
        np.ones(400, np.float32),
        prior,
        2,
        0.1,
        None,
        np.random.default_rng(0),
    )
    assert found == []


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
        clusters, sparse.csr_array(weights), np.array([1, 2, 3]), np.array([0.0, 9.0, 1.0, 5.0])
    )
    assert [(column, rows.tolist()) for column, rows in found] == [
        (3, clusters[1].tolist()),
        (2, clusters[2].tolist()),
    ]
    assert (
        _taken_over(
            clusters, sparse.csr_array(weights), np.array([1]), np.array([0.0, 9.0, 1.0, 5.0])
        )
        == []
    )


def test_residuals_leave_out_what_is_explained_and_keep_whole_what_fits_badly(monkeypatch):
    prior, images, L, z = problem(m=40)
    bad = np.arange(10) == 4
    of_rows = np.where(np.arange(40) % 5 == 0, 1.1 * POOR, 1.0).astype(np.float32)
    seen = []
    monkeypatch.setattr(
        module,
        "grow_by_class",
        lambda cosines, labels, **options: seen.append((cosines, options)) or [],
    )
    rng = np.random.default_rng(0)
    assert (
        regrow(z, sparse.csr_array(L), images, bad, np.ones(10), of_rows, prior, 2, 0.3, None, rng)
        == []
    )
    ((cosines, options),) = seen
    known = np.where(bad, 0, L)
    poor = of_rows > 1
    left = np.where(poor[:, None], z, z - known @ images) @ whiten(prior)
    left /= np.linalg.norm(left, axis=1, keepdims=True)
    full = ((known > 0.15).sum(axis=1) == 2) & ~poor
    assert 0 < full.sum() < 40
    np.testing.assert_allclose(cosines, np.where(full | full[:, None], 0, left @ left.T), atol=1e-3)
    assert [c.tolist() for c in options["have"]] == [
        np.flatnonzero(L[:, j]).tolist() for j in range(10) if j != 4
    ]
    assert options["most"] == 1
