"""Clusters of encodings: exact on planted blocks, pure on smooth images, none in noise."""

import numpy as np
import pytest

from unveil.gram.cosines import UNIT
from unveil.gram.energies import whitened_energies
from unveil.images.clusters import _neighbours, _seeds, grow_by_class, grow_clusters
from unveil.images.prior import image_prior
from unveil.parallel import using


def rng(seed=0):
    return np.random.default_rng(seed)


def planted(blocks=5, each=12, m=200, strength=0.6, sigma=0.1, seed=0):
    """Cosines with `blocks` groups of `each` encodings that are alike, in random places, and
    noise."""
    draw = rng(seed)
    groups = draw.permutation(m)[: blocks * each].reshape(blocks, each)
    noise = sigma * draw.standard_normal((m, m))
    C = (noise + noise.T) / np.sqrt(2)
    for group in groups:
        C[np.ix_(group, group)] += strength
    np.fill_diagonal(C, 1)
    return C.astype(np.float32), {frozenset(group.tolist()) for group in groups}


def sets(clusters):
    return [frozenset(cluster.tolist()) for cluster in clusters]


def of_images(n=12, m=400, public=1, seed=0):
    """Cosines of squares of encodings of smooth images, and their memberships."""
    draw = rng(seed)
    prior = image_prior((16, 16))

    members = draw.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    weights = draw.dirichlet(np.full(2 + public, 4.0), m)
    L = np.zeros((m, n))
    np.put_along_axis(L, members, weights[:, :2], axis=1)
    z = L @ prior.draw(n, draw)
    for column in weights.T[2:]:
        z += column[:, None] * prior.draw(m, draw)
    K = whitened_energies(np.abs(z).astype(np.float32)).gram
    scale = 1 / np.sqrt(np.diag(K))
    return (K * scale * scale[:, None]).astype(np.float32), L > 0


def test_planted_groups_come_back_exactly():
    C, truth = planted()
    found = sets(grow_clusters(C, size=50, most=50, rng=rng()))
    assert len(found) == len(truth)
    assert set(found) == truth


def test_no_more_than_asked_for_and_none_larger():
    C, truth = planted()
    found = sets(grow_clusters(C, size=8, most=3, rng=rng()))
    assert len(found) == 3
    assert all(len(cluster) == 8 and any(cluster <= group for group in truth) for cluster in found)
    assert grow_clusters(C, size=8, most=0, rng=rng()) == []


def test_clusters_that_are_there_are_not_found_again():
    C, truth = planted()
    have = sorted(sorted(group) for group in truth)[:2]
    found = grow_clusters(C, size=50, most=50, have=[np.array(group) for group in have], rng=rng())
    assert set(sets(found)) == truth - {frozenset(group) for group in have}
    assert (
        grow_clusters(
            C, size=50, most=50, have=found + [np.array(group) for group in have], rng=rng()
        )
        == []
    )


def test_the_few_encodings_left_of_a_cluster_do_not_make_another_one_its_repeat():
    """Where encodings with all their images are left out, three are left of one that meets a new
    image in two of them."""
    C, truth = planted(blocks=1, each=30)
    (group,) = truth
    members = sorted(group)
    outside = min(set(range(200)) - group)
    have = [np.array([members[i], members[i + 1], outside]) for i in range(0, 20, 2)]
    (found,) = grow_clusters(C, size=30, most=5, have=have, rng=rng())
    assert set(found.tolist()) == group


def test_noise_has_no_clusters():
    C, _ = planted(blocks=0, m=300)
    assert grow_clusters(C, size=30, most=30, rng=rng()) == []


def test_the_diagonal_and_the_order_of_encodings_say_nothing():
    C, _ = planted()
    found = set(sets(grow_clusters(C, size=50, most=50, rng=rng())))
    other = C.copy()
    np.fill_diagonal(other, -7)
    assert set(sets(grow_clusters(other, size=50, most=50, rng=rng()))) == found
    order = rng(1).permutation(len(C))
    moved = grow_clusters(
        np.ascontiguousarray(C[np.ix_(order, order)]), size=50, most=50, rng=rng()
    )
    assert set(sets(order[cluster] for cluster in moved)) == found


def test_the_same_generator_gives_the_same_clusters_and_progress_counts_them():
    C, _ = of_images()
    seen = []
    one = grow_clusters(C, size=40, most=12, rng=rng(3), progress=lambda *at: seen.append(at))
    other = grow_clusters(C, size=40, most=12, rng=rng(3))
    assert [a.tolist() for a in one] == [b.tolist() for b in other]
    assert seen == [("clusters", i + 1, 12) for i in range(len(one))]


def test_neighbours_are_the_most_similar_pairs_and_seeds_have_three_in_common():
    C, _ = planted(m=120)
    graph = _neighbours(C, 0.05, rng())
    dense = graph.toarray() > 0
    off = ~np.eye(120, dtype=bool)
    assert not np.diag(dense).any()
    assert dense[off].mean() == pytest.approx(0.05, rel=0.05)
    assert C[dense].min() > C[~dense & off].max()
    i, j, common = _seeds(graph)
    expected = {(a, b): int((dense[a] & dense[b]).sum()) for a, b in np.argwhere(np.triu(dense))}
    assert dict(zip(zip(i, j, strict=True), common, strict=True)) == {
        p: c for p, c in expected.items() if c >= 3
    }


def test_whole_numbers_do_as_well_and_so_do_threads():
    C, truth = planted(blocks=8, m=400)
    whole = np.rint(C.clip(-1, 1) * UNIT).astype(np.int16)
    found = []
    for workers in (1, 2):
        with using(workers=workers):
            found.append(sets(grow_clusters(whole, size=50, most=50, rng=rng())))
    assert found[0] == found[1]
    assert set(found[0]) == truth


def test_clusters_of_smooth_images_are_pure_and_find_most_images():
    C, members = of_images()
    clusters = grow_clusters(C, size=40, most=12, rng=rng())
    share = np.array([members[cluster].mean(axis=0) for cluster in clusters])
    assert (share.max(axis=1) > 0.8).sum() >= 10
    assert len(set(share.argmax(axis=1))) >= 8


def test_with_labels_every_cluster_keeps_to_a_class():
    """Class of group g is g mod 2; encodings of no group mix either class."""
    C, truth = planted()
    groups = sorted(sorted(group) for group in truth)
    labels = np.zeros((len(C), 3), np.float32)
    rest = np.setdiff1d(np.arange(len(C)), np.concatenate(groups))
    labels[rest, rng().integers(0, 2, len(rest))] = 1
    for g, group in enumerate(groups):
        labels[group, g % 2] = 1
    found = grow_by_class(C, labels, size=50, most=50, rng=rng())
    assert set(sets(found)) == truth
    for cluster in found:
        assert labels[cluster].all(axis=0).any()
    assert len(grow_by_class(C, labels, size=50, most=2, rng=rng())) == 2
    have = [np.array(groups[0])]
    assert set(sets(grow_by_class(C, labels, size=50, most=50, have=have, rng=rng()))) == truth - {
        frozenset(groups[0])
    }


def test_a_group_half_of_which_has_another_class_is_not_a_cluster_of_either():
    C, truth = planted(blocks=1, each=20)
    (group,) = (sorted(group) for group in truth)
    labels = np.zeros((len(C), 2), np.float32)
    labels[np.arange(len(C)), np.arange(len(C)) % 2] = 1
    labels[group] = 0
    labels[group[:10], 0] = labels[group[10:], 1] = 1
    assert grow_by_class(C, labels, size=50, most=50, rng=rng()) == []
    assert grow_by_class(C, None, size=50, most=50, rng=rng())[0].tolist() == group


def test_fewer_encodings_than_neighbours_do_not_stop_the_search():
    cosines = np.ones((5, 5), np.float32)
    assert grow_clusters(cosines, size=3, most=2, rng=np.random.default_rng(0)) is not None
