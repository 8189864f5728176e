"""Clusters whose moves agree: who is in them, and which copies they show."""

import numpy as np
from tests.images.test_votes import MOVES, aligned

from unveil.encode.copies import Copies
from unveil.gram.aligned import Alignment
from unveil.images.epochs import Epochs
from unveil.images.moved_clusters import _undivided, grow_moved, placed

COPIES = Copies((20, 20), 2, True)


def alignment(**options):
    gain, move, image, copy = aligned(**options)
    return Alignment(gain, move, MOVES), image, copy


def right(found, image, copy, least=0.8):
    """Images whose cluster has no others, and copies that are right up to a move."""
    out = []
    for rows, at in found:
        (name,) = set(image[rows])
        true, told = np.array(copy)[rows], COPIES.steps[at]
        turned = np.stack([1 - true[:, 0], true[:, 1], 4 - true[:, 2]], axis=1)
        same = max((told - way == (told - way)[0]).all(axis=1).mean() for way in (true, turned))
        assert same > least
        out.append(name)
    return sorted(out)


def test_all_images_are_found_with_their_copies():
    found, image, copy = alignment()
    clusters = grow_moved(found, COPIES, size=30, most=6)
    assert right(clusters, image, copy) == [0, 1, 2]
    # Those there are already are not found again, and no more than are asked for.
    have = [clusters[0][0], clusters[1][0]]
    assert len(grow_moved(found, COPIES, size=30, most=6, have=have)) == 1
    assert len(grow_moved(found, COPIES, size=30, most=2)) == 2


def test_similarity_alone_makes_no_cluster():
    """The same pairs alike, any moves."""
    found, _, _ = alignment(right=1.0)
    move = np.random.default_rng(1).integers(0, len(MOVES), found.move.shape).astype(np.int16)
    assert not grow_moved(Alignment(found.similarity, move, MOVES), COPIES, size=30, most=6)


def test_a_cluster_has_k_rows_of_an_epoch_at_most():
    found, _, _ = alignment()
    epochs = Epochs(np.arange(120) // 4, 4, 2)
    for rows, _ in grow_moved(found, COPIES, size=30, most=6, epochs=epochs):
        assert np.bincount(rows // 4).max() <= 2


def test_a_cluster_of_two_images_is_parted():
    rng = np.random.default_rng(0)
    one = rng.random((30, 30)) * (rng.random((30, 30)) < 0.4)
    assert _undivided(one).tolist() == list(range(30))
    two = one.copy()
    two[:18, 18:] *= 0.02
    two[18:, :18] *= 0.02
    assert _undivided(two).tolist() == list(range(18))
    assert not len(_undivided(one[:3, :3]))


def test_the_place_of_an_image_is_where_most_moves_are_within_reach():
    moves = np.array([(0, d, x) for d in range(-1, 4) for x in range(-3, 2)])
    at = placed(moves, COPIES)
    np.testing.assert_array_equal(COPIES.steps[at][:, 1], 3 - moves[:, 1])
    np.testing.assert_array_equal(COPIES.steps[at][:, 2], 1 - moves[:, 2])
    far = placed(np.concatenate([moves, [(1, -4, 0)]]), COPIES)
    assert far[-1] == -1
    np.testing.assert_array_equal(far[:-1], at)
