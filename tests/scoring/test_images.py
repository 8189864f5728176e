"""SSIM against scikit-image, PSNR by hand, matching one to one, the challenge's scores against its
rules written as a loop."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from unveil.checks import InputError
from unveil.scoring.images import challenge_scores, image_scores, psnr, ssim, ssim_table

SHAPES = [(9, 12, 3), (7, 7, 1), (16, 8), (32, 32, 3)]


def images(n, shape, seed=0):
    """Smooth pictures in [−1, 1], so that SSIM has something to see."""
    rng = np.random.default_rng(seed)
    x = np.cumsum(np.cumsum(rng.standard_normal((n, *shape)), axis=1), axis=2)
    return (x / np.abs(x).max(axis=tuple(range(1, x.ndim)), keepdims=True)).astype(np.float32)


def twin(a, b):
    """SSIM of two images by its definition, window by window."""
    values = []
    a, b = ((np.atleast_3d(v).astype(np.float64) + 1) / 2 for v in (a, b))
    for i in range(a.shape[0] - 6):
        for j in range(a.shape[1] - 6):
            for c in range(a.shape[2]):
                p, q = (v[i : i + 7, j : j + 7, c].ravel() for v in (a, b))
                (v, cov), (_, w) = np.cov(p, q)
                top = (2 * p.mean() * q.mean() + 0.01**2) * (2 * cov + 0.03**2)
                values.append(top / ((p.mean() ** 2 + q.mean() ** 2 + 0.01**2) * (v + w + 0.03**2)))
    return np.mean(values)


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_ssim_equals_its_definition(shape):
    a, b = images(3, shape), images(3, shape, 1)
    np.testing.assert_allclose(
        ssim(a, b, shape), [twin(x, y) for x, y in zip(a, b, strict=True)], atol=1e-10
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_ssim_equals_scikit_image(shape):
    metrics = pytest.importorskip("skimage.metrics", reason="scikit-image is the oracle")
    a, noise = images(6, shape), images(6, shape, 2)
    b = np.clip(a + 0.3 * noise, -1, 1)
    axis = -1 if len(shape) == 3 else None
    expected = [
        metrics.structural_similarity(
            (x.astype(float) + 1) / 2, (y.astype(float) + 1) / 2, channel_axis=axis, data_range=1
        )
        for x, y in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(ssim(a, b, shape), expected, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_table_holds_every_pair_and_flat_arrays_are_the_same(shape, monkeypatch):
    a, b = images(4, shape), images(5, shape, 1)
    table = ssim_table(a, b, shape)
    for i in range(4):
        np.testing.assert_allclose(
            table[i], ssim(np.repeat(a[i : i + 1], 5, axis=0), b, shape), atol=1e-12
        )
    np.testing.assert_array_equal(ssim_table(a.reshape(4, -1), b.reshape(5, -1), shape), table)
    monkeypatch.setattr(
        "unveil.scoring.images._blocks",
        lambda count, _: (slice(i, i + 2) for i in range(0, count, 2)),
    )
    np.testing.assert_allclose(ssim_table(a, b, shape), table, atol=1e-12)
    np.testing.assert_allclose(np.diag(ssim_table(a, a, shape)), 1, atol=1e-12)
    np.testing.assert_allclose(ssim_table(b, a, shape).T, table, atol=1e-12)


def test_negatives_and_inverted_halves_count_as_what_they_are():
    """Both were good images to SSIM on [−1, 1]; a little more light is still a good one."""
    a = 0.8 * images(4, (16, 16), 5)
    half = a.copy()
    half[:, :, 8:] *= -1
    assert ssim(a, -a, (16, 16)).max() < 0
    assert ssim(a, half, (16, 16)).max() < 0.6
    assert ssim(a, a + 0.1, (16, 16)).min() > 0.9


def test_psnr_by_hand():
    a = np.zeros((4, 7, 7))
    b = a.copy()
    b[1] = 0.2  # mean square 0.04 of a peak square of 4: a factor of 100
    b[2, 0, 0] = 1.0
    b[3] = 5.0  # clipped to 1
    np.testing.assert_allclose(
        psnr(a, b, (7, 7)), [100, 20, 10 * np.log10(4 * 49), 10 * np.log10(4)], rtol=1e-6
    )


def test_matching_is_one_to_one_and_the_best_there_is():
    shape = (8, 8, 3)
    truth = images(6, shape)
    order = np.array([4, 2, 0, 5])
    recovered = np.clip(truth[order] + 0.1 * images(4, shape, 3), -1, 1)
    scores = image_scores(recovered, truth, shape)
    np.testing.assert_array_equal(scores.matches, [2, -1, 1, -1, 0, 3])
    np.testing.assert_array_equal(scores.ssim[[1, 3]], 0)
    np.testing.assert_array_equal(scores.psnr[[1, 3]], 0)
    table = ssim_table(recovered, truth, shape)
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


def test_the_older_name_of_an_image_shape_still_works():
    images = np.linspace(-1, 1, 3 * 64).reshape(3, 64)
    new, old = (
        image_scores(images, images, image_shape=(8, 8)),
        image_scores(images, images, shape=(8, 8)),
    )
    np.testing.assert_array_equal(new.ssim, old.ssim)
    pairs = np.array([[0, 1]])
    assert challenge_scores(images[:1], images, pairs, shape=(8, 8)) == challenge_scores(
        images[:1], images, pairs, (8, 8)
    )
    with pytest.raises(InputError, match="no image_shape"):
        image_scores(images, images)
