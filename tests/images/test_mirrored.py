"""Images found twice, once mirrored: pairs by brute force, order does not matter, nothing is
lost."""

from itertools import permutations

import numpy as np

from unveil.images.mirrored import merge_mirrored, mirror
from unveil.images.prior import image_prior
from unveil.images.reweigh import whiten

SHAPE = (8, 6)
PRIOR = image_prior(SHAPE)


def smooth(n, seed):
    return PRIOR.draw(n, np.random.default_rng(seed))


def found_twice(n=5, noise=0.05, seed=0):
    """n images and n noisy mirror images of them, in random order; which image each is."""
    rng = np.random.default_rng(seed)
    x = smooth(n, seed)
    both = np.concatenate([x, mirror(x, SHAPE)]) + noise * rng.standard_normal((2 * n, 48)).astype(
        np.float32
    )
    order = rng.permutation(2 * n)
    return x, both[order], np.tile(np.arange(n), 2)[order]


def test_mirror_is_left_to_right_and_its_own_inverse():
    x = np.arange(96, dtype=np.float32).reshape(2, 48)
    assert (mirror(x, SHAPE).reshape(2, *SHAPE)[1, 3] == x.reshape(2, *SHAPE)[1, 3, ::-1]).all()
    assert (mirror(mirror(x, SHAPE), SHAPE) == x).all()
    colour = np.arange(48, dtype=np.float32).reshape(1, 48)
    assert (mirror(colour, (4, 4, 3)).reshape(4, 4, 3)[0, 0] == colour.reshape(4, 4, 3)[0, 3]).all()


def test_pairs_become_one_image_each():
    x, both, name = found_twice()
    merged, became = merge_mirrored(both, np.ones(10), SHAPE, PRIOR)
    assert merged.shape == (5, 48)
    for pair in range(5):
        (which,) = set(name[became == pair])
        error = min(
            np.abs(merged[pair] - x[which]).max(),
            np.abs(merged[pair] - mirror(x, SHAPE)[which]).max(),
        )
        assert error < 0.2


def test_pairs_are_those_of_brute_force():
    _, both, _ = found_twice(n=3, noise=0.3, seed=1)
    _, became = merge_mirrored(both, np.ones(6), SHAPE, PRIOR)
    x, y = (part @ whiten(PRIOR) for part in (both, mirror(both, SHAPE)))
    alike = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (
        y / np.linalg.norm(y, axis=1, keepdims=True)
    ).T
    best = max(
        permutations(range(6)),
        key=lambda p: alike[p[0], p[1]] + alike[p[2], p[3]] + alike[p[4], p[5]],
    )
    assert {frozenset(np.flatnonzero(became == pair).tolist()) for pair in range(3)} == {
        frozenset(best[i : i + 2]) for i in (0, 2, 4)
    }


def test_more_encodings_weigh_more_and_face_forward():
    x = smooth(1, 2)
    both = np.concatenate([x, mirror(x, SHAPE) + 1])
    merged, _ = merge_mirrored(both, np.array([3.0, 1.0]), SHAPE, PRIOR)
    np.testing.assert_allclose(merged[0], x[0] + 0.25, atol=1e-5)


def test_an_odd_image_stays_alone():
    _, both, _ = found_twice(n=2)
    merged, became = merge_mirrored(np.concatenate([both, smooth(1, 9)]), np.ones(5), SHAPE, PRIOR)
    assert len(merged) == 3
    assert (became >= 0).all()
