"""Rounds among white noise: images come back with the sign that is lit from above, and say how sure
they are."""

import numpy as np
from scipy import sparse

from unveil.images import white_rounds as module
from unveil.images.prior import image_prior, smooth_prior
from unveil.images.task import ImageTask, WeightLaw
from unveil.images.white_rounds import lit, repeats, white_rounds
from unveil.scheme import Scheme

SHAPE = (12, 12)


def test_images_come_back_from_half_known_members(monkeypatch):
    monkeypatch.setattr(module, "CYCLES", 2)
    rng = np.random.default_rng(3)
    n, m, d = 6, 360, 144
    scheme = Scheme(2, 4, "released")
    light = np.repeat(np.linspace(0.3, -0.3, 12), 12)
    images = np.clip(smooth_prior(SHAPE).draw(n, rng) + light, -1, 1)
    members = rng.permuted(np.tile(np.arange(n), (m, 1)), axis=1)[:, :2]
    A = np.zeros((m, n), np.float32)
    np.put_along_axis(A, members, rng.uniform(0.15, 0.4, (m, 2)).astype(np.float32), axis=1)
    public = (1 - A.sum(axis=1, keepdims=True)) * 0.5 * rng.uniform(-1, 1, (m, d))
    Y = np.abs(A @ images + public).astype(np.float32)
    prior = image_prior(SHAPE, rng.uniform(-1, 1, (500, d)).astype(np.float32))
    task = ImageTask(Y, scheme, WeightLaw.of(scheme, rng), prior, None, shape=SHAPE)
    # The second member of every other encoding is unknown: some weight on any image.
    known = A.copy()
    unknown = np.arange(0, m, 2)
    known[unknown, members[unknown, 1]] = 0
    known[unknown] += 0.02
    weights = sparse.csr_array(known)
    state, sure, again = white_rounds(task, weights, weights.multiply(weights).tocsr(), n, rng)
    likeness = np.corrcoef(state.images, images)[:n, n:]
    assert (likeness.max(axis=1) > 0.85).sum() >= n - 1
    assert sure.shape == again.shape == (n,)
    assert np.median(sure) > 0.8
    assert np.array_equal(np.sign(state.signed), np.sign(state.mixture.weights @ state.images))


def test_the_sign_of_all_is_light_from_above_or_that_of_like_images():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((3, 144)).astype(np.float32) * 0.1
    images += np.repeat(np.linspace(-0.3, 0.3, 12), 12).astype(np.float32)
    assert lit(images, SHAPE, None) == -1
    assert lit(-images, SHAPE, None) == 1
    assert lit(images, SHAPE, images[0]) == 1


def test_images_repeat_themselves_in_other_cycles_up_to_one_sign():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((4, 144)).astype(np.float32)
    other = -images + 0.1 * rng.standard_normal(images.shape).astype(np.float32)
    other[3] = rng.standard_normal(144)
    found = repeats(images, [images, other])
    assert found[:3].min() > 0.95
    assert abs(found[3]) < 0.4
    np.testing.assert_array_equal(repeats(images, [images]), 1)
