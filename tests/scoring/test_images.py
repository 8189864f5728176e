"""Matching one to one, and the challenge's scores against its rules written as a loop."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.scoring.test_ssim import images, twin

from unveil.checks import InputError
from unveil.scoring.images import challenge_scores, image_scores, ssim


def test_matching_is_one_to_one_and_the_best_there_is():
    shape = (8, 8, 3)
    truth = images(6, shape)
    order = np.array([4, 2, 0, 5])
    recovered = np.clip(truth[order] + 0.1 * images(4, shape, 3), -1, 1)
    scores = image_scores(recovered, truth, shape)
    np.testing.assert_array_equal(scores.matches, [2, -1, 1, -1, 0, 3])
    np.testing.assert_array_equal(scores.ssim[[1, 3]], 0)
    np.testing.assert_array_equal(scores.psnr[[1, 3]], 0)
    table = np.array([ssim(np.repeat(one[None], 6, axis=0), truth, shape) for one in recovered])
    assert scores.ssim.sum() == pytest.approx(table[linear_sum_assignment(-table)].sum())
    assert scores.mean_ssim == pytest.approx(scores.ssim.mean())
    assert scores.mean_psnr == pytest.approx(scores.psnr.mean())
    assert scores.share(0.5) == pytest.approx((scores.ssim > 0.5).mean())


def test_one_image_returned_many_times_counts_once():
    truth = images(5, (8, 8))
    scores = image_scores(np.repeat(truth[:1], 5, axis=0), truth, (8, 8))
    assert (scores.ssim > 0.999).sum() == 1
    assert sorted(scores.matches) == [0, 1, 2, 3, 4]


def test_nothing_recovered_scores_nothing():
    scores = image_scores(np.empty((0, 64)), images(3, (8, 8)), (8, 8))
    assert (scores.mean_ssim, scores.mean_psnr) == (0, 0)
    assert (scores.matches == -1).all()


def test_the_challenge_scores_are_its_rules_as_a_loop():
    shape = (8, 8, 3)
    private = images(5, shape)
    pairs = np.random.default_rng(1).integers(0, 5, (12, 2))
    decryption = np.clip(private[pairs[:, 0]] + 0.2 * images(12, shape, 4), -1, 1)
    rows = []
    for x, (i, j) in zip(decryption, pairs, strict=True):
        likeness = [twin(x, private[i]), twin(x, private[j])]
        differ = [np.mean((x.astype(float) - private[p]) ** 2) for p in (i, j)]
        rows.append([max(likeness), sum(likeness) / 2, min(differ), sum(differ) / 2])
    found = challenge_scores(decryption, private, pairs, shape)
    expected = np.mean(rows, axis=0)
    np.testing.assert_allclose(
        [found.max_ssim, found.mean_ssim, found.min_l2, found.mean_l2], expected, atol=1e-8
    )


def test_a_perfect_attack_has_max_ssim_1_and_min_l2_0():
    private = images(4, (8, 8))
    pairs = np.array([[0, 1], [2, 3], [1, 1]])
    found = challenge_scores(private[pairs[:, 0]], private, pairs, (8, 8))
    assert (found.max_ssim, found.min_l2) == (pytest.approx(1), 0)
    assert found.mean_ssim < 1
    assert found.mean_l2 > 0


def test_bytes_are_brought_to_the_range_and_other_ranges_are_refused():
    bytes_ = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    same = bytes_.astype(np.float32) / np.float32(127.5) - np.float32(1)
    assert image_scores(same, bytes_, (8, 8)).mean_ssim == pytest.approx(1)
    with pytest.raises(InputError, match=r"private images from 0 to 249: bring them to"):
        image_scores(same, bytes_.astype(float), (8, 8))


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            lambda: image_scores(np.zeros((2, 36)), np.zeros((2, 36)), (6, 6)),
            "SSIM needs 7×7 or more",
        ),
        (
            lambda: image_scores(np.zeros((2, 49)), np.zeros((2, 64)), (8, 8)),
            "has 64 pixels, the vectors 49",
        ),
        (lambda: ssim(np.zeros((2, 49)), np.zeros((3, 49)), (7, 7)), "2 images and 3 others"),
        (
            lambda: challenge_scores(
                np.zeros((2, 49)), np.zeros((3, 49)), np.array([[0, 1]]), (7, 7)
            ),
            "each of the 2",
        ),
        (
            lambda: challenge_scores(
                np.zeros((1, 49)), np.zeros((3, 49)), np.array([[0, 3]]), (7, 7)
            ),
            "beyond the 3",
        ),
        (
            lambda: challenge_scores(
                np.zeros((1, 49)), np.zeros((3, 49)), np.array([[0, -1]]), (7, 7)
            ),
            "beyond the 3",
        ),
        (
            lambda: challenge_scores(
                np.zeros((1, 49)), np.zeros((3, 49)), np.array([[0.5, 1]]), (7, 7)
            ),
            "give the private",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_sentence(call, complaint):
    with pytest.raises(InputError, match=complaint) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_scores_of_images_need_their_shape():
    images = np.linspace(-1, 1, 3 * 64).reshape(3, 64)
    with pytest.raises(InputError, match="no image_shape"):
        image_scores(images, images)
