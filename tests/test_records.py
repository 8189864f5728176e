"""The nouns that cross rooms, and what each can be asked."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from unveil.checks import InputError
from unveil.encodings import Encodings
from unveil.records import Floral, Overlaps, Recovery, Supports
from unveil.scheme import Scheme


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Scheme().k_private = 3


@pytest.mark.parametrize(
    "wrap", [np.asarray, np.ndarray.tolist, sparse.csr_array, sparse.coo_array, sparse.csc_matrix]
)
def test_overlaps_take_any_symmetric_integer_matrix_dense_or_sparse_even_negative(wrap):
    rng = np.random.default_rng(0)
    M = rng.integers(-5, 6, size=(7, 7))
    M = M + M.T
    overlaps = Overlaps.from_array(wrap(M), 3)
    assert (overlaps.m, overlaps.k_private) == (7, 3)
    assert np.isnan(overlaps.expected_errors)
    np.testing.assert_array_equal(overlaps.toarray(), M)
    np.testing.assert_array_equal(overlaps.tocsr().toarray(), M)


def test_overlaps_take_whole_floats_and_hand_out_copies():
    M = np.array([[2.0, -1.0], [-1.0, 2.0]])
    overlaps = Overlaps.from_array(M, 2)
    assert overlaps.toarray().dtype == np.int64
    copy = overlaps.tocsr()
    copy.data[:] = 9
    np.testing.assert_array_equal(overlaps.toarray(), M)


@pytest.mark.parametrize(
    ("matrix", "k_private", "complaint"),
    [
        (np.array([[2, 1], [0, 2]]), 2, "not symmetric"),
        (np.array([[2, 1], [-1, 2]]), 2, "not symmetric"),
        (np.array([[2, 0.5], [0.5, 2]]), 2, "not whole numbers"),
        (np.array([[2, np.nan], [np.nan, 2]]), 2, "not whole numbers"),
        (np.array([[2, np.inf], [np.inf, 2]]), 2, "not whole numbers"),
        (np.array([["a", "b"], ["b", "a"]]), 2, "not whole numbers"),
        (np.ones((2, 3), int), 2, "square matrix"),
        (np.ones(4, int), 2, "square matrix"),
        (np.ones((0, 0), int), 2, "square matrix"),
        (np.ones((2, 2), int), 0, "k_private=0"),
        (np.ones((2, 2), int), -1, "k_private=-1"),
    ],
)
def test_overlaps_refuse_every_other_matrix(matrix, k_private, complaint):
    with pytest.raises(InputError, match=complaint):
        Overlaps.from_array(matrix, k_private)


def test_floral_incidence_has_a_one_where_the_label_holds_the_name():
    labels = np.array([[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]])
    floral = Floral(np.arange(6), labels)
    expected = [[int(name in label) for name in range(4)] for label in labels.tolist()]
    np.testing.assert_array_equal(floral.incidence, expected)


def test_supports_incidence_has_a_one_where_the_encoding_uses_the_vector():
    supports = Supports(np.array([[0, 3], [1, 4], [0, 1]]), np.ones(3), "diagonal")
    np.testing.assert_array_equal(
        supports.incidence(6).toarray(),
        [[1, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0], [1, 1, 0, 0, 0, 0]],
    )


def test_supports_without_public_vectors_have_an_empty_incidence():
    supports = Supports(np.empty((4, 0), np.int64), np.ones(4), "diagonal")
    assert supports.incidence(3).toarray().tolist() == [[0, 0, 0]] * 4


def test_an_empty_recovery_keeps_the_shape_of_its_encodings():
    encodings = Encodings(np.ones((5, 7)), Scheme())
    recovery = Recovery.empty(encodings, "paper", "nothing found", {"overlaps": 0.1})
    assert len(recovery) == 0
    assert recovery.vectors.shape == (0, 7)
    assert recovery.members.shape == (5, 0)
    assert recovery.verified.tolist() == []
    assert (recovery.explanation, recovery.seconds) == ("nothing found", {"overlaps": 0.1})


def test_only_the_status_verified_counts_as_verified():
    status = np.array(["verified", "ambiguous", "unresolved", "verified"])
    recovery = Recovery(
        np.zeros((4, 2), np.float32),
        status,
        False,
        sparse.csr_array((3, 4), dtype=bool),
        np.zeros(4),
        ("",) * 4,
        "paper",
        "",
    )
    assert recovery.verified.tolist() == [True, False, False, True]
