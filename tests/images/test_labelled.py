"""Places that labels tell of: their weights, the order of rows, and who is in them."""

import numpy as np
import pytest

from unveil.gram.cosines import Alike
from unveil.gram.windows import window_energies
from unveil.images.labelled import (
    class_sizes,
    evidence,
    in_epochs,
    labelled_memberships,
    length_of_epochs,
    matched_places,
    places_of,
)
from unveil.images.prior import image_prior


def problem(n=20, epochs=15, classes=5, seed=0):
    """How alike encodings of smooth images are, true weights, labels; rows epoch by epoch."""
    rng = np.random.default_rng(seed)
    prior = image_prior((16, 16))
    members = np.concatenate(
        [np.stack([rng.permutation(n), rng.permutation(n)], axis=1) for _ in range(epochs)]
    )
    weights = rng.dirichlet(np.full(4, 4.0), n * epochs)
    L = np.zeros((n * epochs, n), np.float32)
    np.add.at(L, (np.arange(len(L))[:, None], members), weights[:, :2])
    z = L @ prior.draw(n, rng)
    for column in weights.T[2:]:
        z += column[:, None] * prior.draw(len(L), rng)
    labels = np.stack([L[:, c::classes].sum(axis=1) for c in range(classes)], axis=1)
    return window_energies(np.abs(z).astype(np.float32), (16, 16)), L, labels


def counts_of(labels):
    places = places_of(labels, 2)
    counts = np.zeros(labels.shape, np.int64)
    np.add.at(counts, (places.row, places.of), 1)
    return counts


def right(found, L):
    """Share of true members whose column, the best for their image, is likely there."""
    likeness = np.corrcoef(found.probability.T, (L > 0).T)[: L.shape[1], L.shape[1] :]
    column = likeness.argmax(axis=0)
    return float(found.probability[:, column][L > 0].mean())


def test_a_row_has_k_places_and_the_weights_of_its_classes():
    labels = np.array([[0.3, 0, 0.1], [0, 0.4, 0], [0, 0, 0]], np.float32)
    places = places_of(np.repeat(labels, [9, 1, 1], axis=0), 2)
    np.testing.assert_array_equal(places.row[-4:], [8, 8, 9, 9])
    np.testing.assert_array_equal(places.of[-4:], [0, 2, 1, 1])
    np.testing.assert_allclose(places.weight[-4:], [0.3, 0.1, 0.2, 0.2], rtol=1e-6)
    np.testing.assert_array_equal(places.sure[-4:], [True, True, False, False])


def test_labels_that_leave_open_who_weighs_what_give_no_places():
    assert places_of(np.full((4, 1), 0.5, np.float32), 2) is None
    # Two classes of three images: which has two of them?
    assert places_of(np.full((4, 2), 0.3, np.float32), 3) is None


@pytest.mark.parametrize("wrong", [0, 15])
def test_counts_of_classes_show_the_order_of_rows(wrong):
    _, _, labels = problem()
    labels[:wrong] = labels[np.random.default_rng(1).permutation(300)[:wrong]]
    counts = counts_of(labels)
    assert in_epochs(counts, 20)
    assert not in_epochs(counts, 19)
    assert not in_epochs(counts, 21)
    assert not in_epochs(counts[np.random.default_rng(0).permutation(300)], 20)
    assert not in_epochs(counts[:60], 20)


def test_the_number_of_images_is_the_length_of_an_epoch():
    counts = counts_of(problem()[2])
    assert length_of_epochs(counts, 2) == 20
    assert length_of_epochs(counts[np.random.default_rng(0).permutation(300)], 2) is None
    assert length_of_epochs(np.full((40, 1), 2), 2) is None


@pytest.mark.parametrize(
    ("counts", "n", "sizes"),
    [
        ([80, 120, 0], 10, [4, 6, 0]),
        ([84, 113, 3], 10, [4, 5, 1]),
        ([5, 100, 95], 2, [0, 1, 1]),
    ],
)
def test_images_of_a_class_are_as_many_as_its_places_say(counts, n, sizes):
    np.testing.assert_array_equal(class_sizes(np.array(counts), n), sizes)


def test_evidence_is_bounded_and_nobody_speaks_for_himself():
    z = np.array([0, 1, 4, 400, -400], np.float32)
    mu = np.full(5, 2, np.float32)
    np.testing.assert_allclose(evidence(z, mu), [0, 0, 6, 6, -10])


def test_every_image_has_as_many_places_of_a_block_as_any_other():
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.permutation(np.repeat(np.arange(3), 2)) for _ in range(8)])
    block = np.repeat(np.arange(8), 6)
    M = np.where(truth[:, None] == truth, 1.5, -1.5) + rng.standard_normal((48, 48))
    M = ((M + M.T) / 2 * (block[:, None] != block)).astype(np.float32)
    p = matched_places(M, block, 3, rng)
    np.testing.assert_allclose(np.add.reduceat(p, np.arange(0, 48, 6)), 2, atol=0.05)
    table = np.zeros((3, 3))
    np.add.at(table, (truth, p.argmax(axis=1)), 1)
    assert (table.max(axis=1) == 16).all()


@pytest.mark.parametrize("n", [20, None])
def test_members_of_ordered_rows(n):
    alike, L, labels = problem()
    kept = alike.cosines.copy()
    found = labelled_memberships(alike, labels, 2, n, np.random.default_rng(0))
    np.testing.assert_array_equal(alike.cosines, kept)
    assert found.epochs is not None
    assert found.epochs.n == 20
    assert right(found, L) > 0.65  # by chance 0.25
    sure = found.probability > 0.9
    sure &= ((labels > 0).sum(axis=1) == 2)[:, None]
    true = (labels[:, :, None] == found.weight[:, None]).any(axis=1)
    assert true[sure].all()  # weights are those of labels


def test_members_of_shuffled_rows():
    alike, L, labels = problem()
    rows = np.random.default_rng(0).permutation(300)
    alike = Alike.of(alike.tile(rows, rows))
    found = labelled_memberships(alike, labels[rows], 2, 20, np.random.default_rng(0))
    assert found.epochs is None
    assert right(found, L[rows]) > 0.6
    assert labelled_memberships(alike, labels[rows], 2, None, np.random.default_rng(0)) is None
