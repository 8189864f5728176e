"""Two images from their mean: the best pair is that of brute force, and what is not known is not
made up."""

import numpy as np

from unveil.data.bundled import fashion_mnist
from unveil.images import layers
from unveil.images.layers import Layers

IMAGES = fashion_mnist()[0].reshape(240, -1).astype(np.float32) / np.float32(127.5) - 1


def test_the_best_pair_is_that_of_brute_force(monkeypatch):
    monkeypatch.setattr(layers, "PAIRS", 1)
    like, h = IMAGES[::4], IMAGES[1:9:4]
    u, mean, miss = Layers(like).split(h)
    for i, image in enumerate(h):
        cost = [
            (np.sum((image - (a + b) / 2) ** 2), p, q)
            for p, a in enumerate(like)
            for q, b in enumerate(like)
            if p < q
        ]
        best, p, q = min(cost)
        np.testing.assert_allclose(miss[i], best, rtol=1e-3)
        np.testing.assert_allclose(mean[i], (like[p] + like[q]) / 2, atol=1e-6)
        np.testing.assert_allclose(np.abs(u[i]), np.abs(like[p] - like[q]) / 2, atol=1e-6)


def test_images_that_are_among_the_like_ones_are_split_exactly(monkeypatch):
    monkeypatch.setattr(layers, "PAIRS", 1)
    a, b = IMAGES[8:16], IMAGES[40:48]
    u, mean, miss = Layers(IMAGES).split((a + b) / 2)
    np.testing.assert_allclose(np.abs(u), np.abs(a - b) / 2, atol=1e-5)
    np.testing.assert_allclose(mean, (a + b) / 2, atol=1e-5)
    assert miss.max() < 1e-2


def test_where_like_images_say_nothing_the_difference_is_small():
    """Noise as like images: pairs disagree, and cancel."""
    rng = np.random.default_rng(0)
    like = rng.standard_normal((200, 300)).astype(np.float32)
    h = rng.standard_normal((3, 300)).astype(np.float32)
    u, _, _ = Layers(like).split(h)
    assert np.square(u).mean() < 0.4 * np.square(like).mean() / 2


def test_many_like_images_are_thinned():
    assert len(Layers(np.zeros((2500, 4), np.float32)).like) <= layers.MOST
