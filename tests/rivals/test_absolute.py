"""One encoding by itself: two images that are nearer to the truth than |y| is, and never called
more than that."""

import numpy as np
import pytest

from unveil import Encodings, InputError, Scheme, image_scores, recover, simulate
from unveil.data.bundled import fashion_mnist
from unveil.rivals.absolute import absolute
from unveil.scoring.images import ssim

SHAPE = (28, 28)
IMAGES = fashion_mnist()[0].reshape(240, -1).astype(np.float32) / np.float32(127.5) - 1
PRIVATE, LIKE = IMAGES[::6], np.delete(IMAGES, np.arange(0, 240, 6), axis=0)


def release(scheme, m=30, rng=0):
    return simulate(scheme, private=PRIVATE, m=m, image_shape=SHAPE, rng=rng)


def likeness(images, sim):
    """Mean SSIM with both images of each encoding, the better way round; images (m, 2, d)."""
    a, b = (PRIVATE[sim.selection.private[:, slot]] for slot in (0, 1))
    straight = ssim(images[:, 0], a, SHAPE) + ssim(images[:, 1], b, SHAPE)
    crossed = ssim(images[:, 1], a, SHAPE) + ssim(images[:, 0], b, SHAPE)
    return float(np.maximum(straight, crossed).mean()) / 2


@pytest.mark.parametrize("signs", ["absolute", "random"])
def test_two_images_per_encoding_better_than_both_baselines(signs):
    sim = release(Scheme(2, signs=signs))
    recovery = absolute(sim.encodings, like=LIKE, rng=0)
    assert len(recovery) == 60
    assert not recovery.verified.any()
    np.testing.assert_array_equal(np.flatnonzero(recovery.members.toarray()[7]), [14, 15])
    found = recovery.vectors.reshape(30, 2, -1)
    assert np.abs(found).max() <= 1
    y = np.repeat(sim.encodings.magnitudes()[:, None] / np.sqrt(np.float32(2)), 2, axis=1)
    mixture = np.repeat(
        PRIVATE[sim.selection.private].mean(axis=1)[:, None], 2, axis=1
    )  # with its true signs
    got = likeness(found, sim)
    assert got > likeness(y, sim) + 0.15
    assert got > likeness(1 - 2 * y, sim) + 0.15
    # The mixture with its true signs, which no attacker has, is a blend of both: farther off in
    # squares, though about as like to the eye.
    assert got > likeness(mixture, sim) - 0.1
    truth = PRIVATE[sim.selection.private]
    ways = [((found - truth[:, order]) ** 2).mean(axis=(1, 2)) for order in ([0, 1], [1, 0])]
    assert np.minimum(*ways).mean() < ((mixture - truth) ** 2).mean()


def test_without_like_images_the_absolute_value_comes_back():
    sim = release(Scheme(2), m=20)
    recovery = recover(sim.encodings, attack="absolute", rng=0)
    np.testing.assert_array_equal(recovery.vectors[::2], recovery.vectors[1::2])
    assert not recovery.signed
    expected = np.minimum(sim.encodings.magnitudes() / np.sqrt(np.float32(2)), 1)
    np.testing.assert_allclose(recovery.vectors[::2], expected, atol=1e-6)


def test_what_it_cannot_take_on_is_refused():
    with pytest.raises(InputError, match="needs images"):
        recover(simulate(Scheme(2), 10, m=5, d=64, rng=0).encodings, attack="absolute")
    for scheme in (Scheme(3), Scheme(1)):
        with pytest.raises(InputError, match="use attack='natural'"):
            recover(release(scheme).encodings, attack="absolute")
    with pytest.raises(InputError, match="use attack='mixing'"):
        recover(release(Scheme(2, signs="kept")).encodings, attack="absolute")
    with pytest.raises(InputError, match="raise memory_limit"):
        recover(release(Scheme(2)).encodings, attack="absolute", memory_limit=1000)


@pytest.mark.parametrize("kind", ["zeros", "noise", "permuted", "repeated"])
def test_hostile_encodings_are_answered_and_nothing_is_verified(kind):
    rng = np.random.default_rng(0)
    values = release(Scheme(2), m=6).encodings.values.copy()
    values = {
        "zeros": np.zeros_like(values),
        "noise": np.abs(rng.standard_normal(values.shape)),
        "permuted": rng.permuted(values, axis=1),
        "repeated": values[[0] * 6],
    }[kind]
    recovery = absolute(Encodings(values, Scheme(2), None, SHAPE), like=LIKE, rng=0)
    assert not recovery.verified.any()
    assert np.isfinite(recovery.vectors).all()


def test_weights_of_their_own_are_taken_for_equal_ones_and_the_seed_decides():
    sim = release(Scheme(2, weighting="half-normal"), m=10)
    first, second = (absolute(sim.encodings, like=LIKE, rng=1) for _ in range(2))
    assert first.vectors.tobytes() == second.vectors.tobytes()
    assert image_scores(first.vectors, PRIVATE, SHAPE).mean_ssim > 0
