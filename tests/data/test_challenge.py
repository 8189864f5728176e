"""The files of the challenge: what is read, what is refused, what is written."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from unveil import Scheme, read_challenge
from unveil.checks import InputError
from unveil.data.challenge import distinct_images, is_challenge, read_decryption, write_decryption
from unveil.records import Recovery


def folder(path: Path, encryption: object, label: object = None) -> Path:
    np.save(path / "encryption.npy", encryption)
    if label is not None:
        np.save(path / "label.npy", label)
    return path


def recovery(vectors: object, members: object, weights: object = None) -> Recovery:
    vectors = np.asarray(vectors, dtype=np.float32)
    return Recovery(
        vectors=vectors,
        status=np.full(len(vectors), "unresolved"),
        signed=True,
        members=sparse.csr_array(np.asarray(members, dtype=bool)),
        residual=np.zeros(len(vectors)),
        reasons=("",) * len(vectors),
        attack="",
        explanation="",
        weights=None if weights is None else sparse.csr_array(weights),
    )


@pytest.mark.parametrize("shape", [(8, 8, 3), (5, 9, 1), (6, 7)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_images_labels_and_the_challenges_scheme(
    shape: tuple[int, ...], dtype: str, tmp_path: Path
) -> None:
    values = np.random.default_rng(0).random((4, *shape)).astype(dtype)
    labels = np.array([[0.5, 0.2], [0.3, 0], [0.1, 0.6], [0, 0.4]])
    encodings = read_challenge(folder(tmp_path, values, labels))
    assert encodings.image_shape == shape
    assert encodings.scheme == Scheme(2, 4, "released", "absolute", "epochs")
    assert encodings.pixel_rms is None
    np.testing.assert_array_equal(encodings.values, values.reshape(4, -1).astype(np.float32))
    assert encodings.labels is not None
    np.testing.assert_allclose(encodings.labels, labels, rtol=1e-7)
    assert is_challenge(tmp_path)
    assert not is_challenge(tmp_path / "nowhere")


def test_negative_numbers_mean_random_signs_and_labels_may_be_missing(tmp_path: Path) -> None:
    values = np.ones((2, 8, 8, 3), np.float32)
    values[1, 0, 0, 0] = -0.5
    encodings = read_challenge(str(folder(tmp_path, values)))
    assert encodings.scheme.signs == "random"
    assert encodings.labels is None
    assert read_challenge(tmp_path, Scheme(3)).scheme == Scheme(3)


@pytest.mark.parametrize(
    ("encryption", "label", "complaint"),
    [
        (
            np.ones((4, 192)),
            None,
            r"encryption\.npy of shape \(4, 192\) .*: give \(m, height, width, channels\)",
        ),
        (np.ones((4, 3, 8, 8)), None, r"put channels last, as array\.transpose\(0, 2, 3, 1\) does"),
        (
            np.ones((4, 8, 8, 3), np.uint8),
            None,
            r"encryption\.npy of shape .* dtype uint8: give floating point",
        ),
        (np.full((4, 8, 8, 3), np.nan), None, "is NaN"),
        (np.ones((0, 8, 8, 3)), None, "is empty"),
        (
            np.ones((4, 8, 8, 3)),
            np.ones(4),
            r"label\.npy of shape \(4,\): give the weight of every class",
        ),
        (np.ones((4, 8, 8, 3)), np.ones((3, 2)), "3 labels of 4 encodings"),
        (np.ones((4, 8, 8, 3)), -np.ones((4, 2)), "labels below zero"),
    ],
)
def test_refusals_name_the_file_and_the_cure(
    encryption: object, label: object, complaint: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=complaint) as caught:
        read_challenge(folder(tmp_path, encryption, label))
    assert "\n" not in str(caught.value)


def test_a_pickle_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no file .*encryption\.npy"):
        read_challenge(tmp_path)
    folder(tmp_path, np.ones((2, 8, 8)))
    (tmp_path / "label.npy").write_bytes(pickle.dumps([[1.0], [0.0]]))
    with pytest.raises(InputError, match=r"label\.npy is a pickle"):
        read_challenge(tmp_path)


def test_every_encoding_gets_the_image_with_its_largest_weight(tmp_path: Path) -> None:
    vectors = np.arange(1, 13).reshape(3, 4) / 12
    weights = np.array([[0.2, 0.5, 0], [0, 0, 0.3], [0, 0, 0], [0.4, 0, 0.1]])
    write_decryption(tmp_path / "d.npy", recovery(vectors, weights > 0, weights), (2, 2))
    rows, shape = read_decryption(tmp_path / "d.npy")
    assert shape == (2, 2)
    expected = np.stack([vectors[1], vectors[2], np.zeros(4), vectors[0]])
    np.testing.assert_array_equal(rows, expected.astype(np.float32))
    found = distinct_images(rows)
    np.testing.assert_array_equal(found[np.argsort(found[:, 0])], vectors.astype(np.float32))


def test_without_weights_the_first_member_and_nothing_recovered_is_grey(tmp_path: Path) -> None:
    vectors = np.eye(3, 4)
    write_decryption(tmp_path / "d.npy", recovery(vectors, [[0, 1, 1], [0, 0, 0]]), (2, 2, 1))
    rows, shape = read_decryption(tmp_path / "d.npy")
    np.testing.assert_array_equal(rows, [vectors[1], np.zeros(4)])
    assert shape == (2, 2, 1)
    write_decryption(tmp_path / "e.npy", recovery(np.empty((0, 4)), np.empty((2, 0))), (2, 2))
    assert not read_decryption(tmp_path / "e.npy")[0].any()
    assert len(distinct_images(np.zeros((2, 4), np.float32))) == 0
