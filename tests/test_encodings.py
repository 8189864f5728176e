"""What encodings know of themselves, and what they refuse."""

import numpy as np
import pytest

from unveil.checks import InputError, as_vectors
from unveil.encodings import Encodings, as_public
from unveil.scheme import Scheme


def test_encodings_of_images_know_their_shape_and_labels():
    labels = np.array([[0.5, 0.25], [0, 1]])
    plain = Encodings(np.ones((2, 12)), Scheme())
    images = Encodings(np.ones((2, 12)), Scheme(), None, [2, 2, 3], labels)
    assert (plain.image_shape, plain.labels) == (None, None)
    assert images.image_shape == (2, 2, 3)
    assert images.labels.dtype == np.float32
    np.testing.assert_array_equal(images.labels, labels)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"image_shape": (3, 3)}, "has 9 pixels, the vectors 12"),
        ({"image_shape": (12,)}, "give .height, width. or .height, width, channels."),
        ({"image_shape": (2, 2, 3, 1)}, "give .height, width."),
        ({"image_shape": (-3, -4)}, "give .height, width."),
        ({"image_shape": (3.5, 4)}, "give .height, width."),
        ({"image_shape": 12}, "give .height, width."),
        ({"image_shape": "ab"}, "give .height, width."),
        ({"labels": np.ones((3, 2))}, "3 labels of 2 encodings: give one row"),
        ({"labels": np.ones(2)}, "labels of shape"),
        ({"labels": [[0.5, -0.1], [0, 0]]}, "labels below zero"),
        ({"labels": [[0.5, np.nan], [0, 0]]}, "labels: the value at row 0"),
    ],
)
def test_shapes_and_labels_that_do_not_fit_are_refused(arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        Encodings(np.ones((2, 12)), Scheme(), **arguments)


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


def test_a_float32_memmap_stays_on_disk(tmp_path):
    mapped = np.lib.format.open_memmap(
        tmp_path / "y.npy", mode="w+", dtype=np.float32, shape=(3, 4)
    )
    mapped[:] = 1
    assert as_vectors(mapped, "x") is mapped
    kept = Encodings(mapped, Scheme()).values
    assert isinstance(kept, np.memmap)
    assert np.shares_memory(kept, mapped)
