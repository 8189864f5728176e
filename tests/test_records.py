"""The nouns that cross rooms: weights and norms, one-sentence complaints, and what each record can
be asked."""

import dataclasses
from math import sqrt

import numpy as np
import pytest
from scipy import sparse

from unveil.records import (
    EXACT_WEIGHTINGS,
    WEIGHTINGS,
    Encodings,
    Floral,
    InputError,
    Overlaps,
    Recovery,
    Scheme,
    Supports,
    as_public,
    as_vectors,
    row_blocks,
)

KS = [(1, 0), (2, 0), (2, 2), (3, 1), (1, 5), (6, 2), (0, 3)]


@pytest.mark.parametrize(("k_private", "k_public"), KS)
def test_equal_weights_give_a_selection_vector_of_norm_one(k_private, k_public):
    scheme = Scheme(k_private, k_public, "equal")
    assert scheme.private_variance + scheme.public_variance == pytest.approx(1)
    for k, weight in ((k_private, scheme.private_weight), (k_public, scheme.public_weight)):
        assert weight == pytest.approx(1 / sqrt(k_private + k_public) if k else 0)


@pytest.mark.parametrize(("k_private", "k_public"), KS)
def test_paper_weights_give_each_part_norm_one_so_both_parts_norm_root_two(k_private, k_public):
    scheme = Scheme(k_private, k_public, "paper")
    assert scheme.private_weight == pytest.approx(1 / sqrt(k_private) if k_private else 0)
    assert scheme.public_weight == pytest.approx(1 / sqrt(k_public) if k_public else 0)
    assert scheme.private_variance + scheme.public_variance == pytest.approx(
        (k_private > 0) + (k_public > 0)
    )


@pytest.mark.parametrize(("k_private", "k_public"), KS)
def test_convex_weights_sum_to_one(k_private, k_public):
    scheme = Scheme(k_private, k_public, "convex")
    assert k_private * scheme.private_weight + k_public * scheme.public_weight == pytest.approx(1)
    assert scheme.private_variance == pytest.approx(k_private / (k_private + k_public) ** 2)
    assert scheme.public_variance == pytest.approx(k_public / (k_private + k_public) ** 2)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"k_private": -1}, "k_private=-1: give a whole number"),
        ({"k_public": 1.5}, "k_public=1.5: give a whole number"),
        ({"k_private": True}, "k_private=True: give a whole number"),
        ({"k_private": "2"}, "k_private='2': give a whole number"),
        ({"k_private": 0, "k_public": 0}, "at least one vector"),
        ({"weighting": "fair"}, "weighting='fair': choose one of equal, paper, convex"),
        ({"weighting": "half-normal", "k_public": 1}, "weights of their own need k_public=0"),
        ({"pairing": "twins"}, "pairing='twins': choose one of independent, epochs"),
        ({"signs": "lost"}, "signs='lost': choose one of absolute, random, kept"),
    ],
)
def test_a_scheme_that_cannot_be_is_refused_in_one_sentence(arguments, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        Scheme(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["private_weight", "private_variance"])
def test_half_normal_weights_are_not_one_number(name):
    scheme = Scheme(2, weighting="half-normal")
    assert not scheme.fixed_weights
    assert Scheme(2).fixed_weights
    assert scheme.public_variance == 0
    with pytest.raises(
        InputError, match="every encoding has weights of its own; use attack='full'"
    ):
        getattr(scheme, name)


@pytest.mark.parametrize("weighting", ["released", "uniform", "dirichlet", "sorted"])
@pytest.mark.parametrize(
    "name", ["private_weight", "private_variance", "public_weight", "public_variance"]
)
def test_drawn_weights_allow_a_public_part_and_are_not_one_number(weighting, name):
    scheme = Scheme(2, 4, weighting)
    assert not scheme.fixed_weights
    assert Scheme(2, 0, weighting).public_weight == 0
    with pytest.raises(
        InputError, match="every encoding has weights of its own; use attack='natural'"
    ):
        getattr(scheme, name)


def test_what_takes_some_weightings_only_lets_those_pass():
    for weighting in WEIGHTINGS:
        scheme = Scheme(2, 0, weighting)
        if weighting in EXACT_WEIGHTINGS:
            scheme.require_weighting(*EXACT_WEIGHTINGS)
        else:
            with pytest.raises(InputError, match="use attack='natural'"):
                scheme.require_weighting(*EXACT_WEIGHTINGS)


def test_encodings_of_images_know_their_shape_and_labels():
    labels = np.array([[0.5, 0.25], [0, 1]])
    plain = Encodings(np.ones((2, 12)), Scheme())
    images = Encodings(np.ones((2, 12)), Scheme(), None, [2, 2, 3], labels)
    assert (plain.shape, plain.labels) == (None, None)
    assert images.shape == (2, 2, 3)
    assert images.labels.dtype == np.float32
    np.testing.assert_array_equal(images.labels, labels)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"shape": (3, 3)}, "has 9 pixels, the vectors 12"),
        ({"shape": (12,)}, "give .height, width. or .height, width, channels."),
        ({"shape": (2, 2, 3, 1)}, "give .height, width."),
        ({"shape": (-3, -4)}, "give .height, width."),
        ({"shape": (3.5, 4)}, "give .height, width."),
        ({"shape": 12}, "give .height, width."),
        ({"shape": "ab"}, "give .height, width."),
        ({"labels": np.ones((3, 2))}, "3 labels of 2 encodings: give one row"),
        ({"labels": np.ones(2)}, "labels of shape"),
        ({"labels": [[0.5, -0.1], [0, 0]]}, "labels below zero"),
        ({"labels": [[0.5, np.nan], [0, 0]]}, "labels: the value at row 0"),
    ],
)
def test_shapes_and_labels_that_do_not_fit_are_refused(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        Encodings(np.ones((2, 12)), Scheme(), **arguments)


def test_a_scheme_takes_numpy_integers_and_is_equal_by_value():
    scheme = Scheme(np.int64(3), np.int32(1))
    assert scheme == Scheme(3, 1)
    assert type(scheme.k_private) is int


def test_records_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Scheme().k_private = 3


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (np.ones(4), "2-D array"),
        (np.ones((2, 2, 2)), "flatten images first"),
        (np.ones((0, 4)), "is empty"),
        (np.ones((4, 0)), "is empty"),
        (np.ones((2, 2), dtype=complex), "give real numbers"),
        (np.array([["a", "b"]]), "give real numbers"),
        (np.array([[None, 1]]), "give real numbers"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), "row 1, pixel 1 is NaN"),
        (np.array([[np.inf, 2.0]]), "row 0, pixel 0"),
        (np.array([[1.0, 1e300]]), "row 0, pixel 1 is NaN, infinite or beyond float32"),
    ],
)
def test_bad_vectors_are_refused_with_their_place_and_the_cure(values, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        as_vectors(values, "encodings")
    assert str(caught.value).startswith("encodings")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64, bool])
def test_every_real_dtype_becomes_float32_in_c_order(dtype):
    values = np.arange(6).reshape(2, 3).astype(dtype)
    out = as_vectors(np.asfortranarray(values), "x")
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, values.astype(np.float32))


def test_a_bad_value_in_a_later_block_is_reported_with_its_own_row(monkeypatch):
    monkeypatch.setattr("unveil.records.row_blocks", lambda array: row_blocks(array, numbers=8))
    values = np.ones((10, 4), np.float32)
    values[7, 2] = np.nan
    with pytest.raises(InputError, match="row 7, pixel 2"):
        as_vectors(values, "x")


def test_row_blocks_cover_every_row_once():
    array = np.arange(35).reshape(7, 5)
    for numbers in (1, 5, 11, 35, 1000):
        blocks = list(row_blocks(array, numbers))
        assert [start for start, _ in blocks] == list(
            np.cumsum([0] + [len(b) for _, b in blocks])[:-1]
        )
        np.testing.assert_array_equal(np.concatenate([b for _, b in blocks]), array)
        assert max(b.size for _, b in blocks) <= max(numbers, 5)


def test_a_float32_memmap_stays_on_disk(tmp_path):
    mapped = np.lib.format.open_memmap(
        tmp_path / "y.npy", mode="w+", dtype=np.float32, shape=(3, 4)
    )
    mapped[:] = 1
    assert as_vectors(mapped, "x") is mapped
    kept = Encodings(mapped, Scheme()).values
    assert isinstance(kept, np.memmap)
    assert np.shares_memory(kept, mapped)


def test_encodings_know_their_size_and_forget_signs_only_when_asked():
    values = np.array([[1.0, -2.0, 0.0], [-3.0, 4.0, -0.5]])
    encodings = Encodings(values, Scheme())
    assert (encodings.m, encodings.d) == (2, 3)
    np.testing.assert_array_equal(encodings.values, values.astype(np.float32))
    np.testing.assert_array_equal(encodings.magnitudes(), np.abs(values))
    np.testing.assert_array_equal(encodings.magnitudes(np.array([1])), np.abs(values[1:]))
    np.testing.assert_array_equal(encodings.magnitudes(slice(0, 1)), np.abs(values[:1]))


@pytest.mark.parametrize("pixel_rms", [0, -1.0, float("nan")])
def test_encodings_refuse_a_pixel_rms_that_is_not_positive(pixel_rms):
    with pytest.raises(InputError, match="pixel_rms"):
        Encodings(np.ones((2, 2)), Scheme(), pixel_rms)


def test_encodings_refuse_anything_but_a_scheme():
    with pytest.raises(InputError, match=r"unveil\.Scheme"):
        Encodings(np.ones((2, 2)), {"k_private": 2})


def test_public_vectors_are_checked_against_scheme_and_pixels():
    encodings = Encodings(np.ones((2, 5)), Scheme(2, 2))
    assert as_public(np.ones((2, 5)), encodings).shape == (2, 5)
    assert as_public(None, Encodings(np.ones((2, 5)), Scheme(2, 0))) is None
    with pytest.raises(InputError, match="no public vectors"):
        as_public(None, encodings)
    with pytest.raises(InputError, match="4 pixels, encodings 5"):
        as_public(np.ones((3, 4)), encodings)
    with pytest.raises(InputError, match="k_public=2 of only 1"):
        as_public(np.ones((1, 5)), encodings)


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
