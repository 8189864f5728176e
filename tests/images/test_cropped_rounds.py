"""Images in the wrong place are moved with their copies; copies of an image count together."""

import numpy as np
from scipy import sparse

from unveil.encode.copies import Copies
from unveil.images.cropped_rounds import _moved, of_images
from unveil.images.cropping import Cropping
from unveil.images.reweigh import Weighing

SHAPE = (8, 8)
CROPPING = Cropping(Copies(SHAPE, 2), np.array([-1.0], np.float32))


def test_an_image_in_the_wrong_place_is_moved_and_mixtures_stay():
    """All crops of an image with a black margin, told as of one that lies a pixel further up."""
    rng = np.random.default_rng(0)
    true = np.full((1, *SHAPE), -1, np.float32)
    true[:, 2:6, 2:6] = rng.standard_normal((1, 4, 4))
    off = np.roll(true, -1, axis=1).reshape(1, -1)
    true = true.reshape(1, -1)
    places = CROPPING.copies.steps
    down, across = (
        places[:, 1] - 1,
        places[:, 2],
    )  # the first are out of reach of the one that is off
    inside = np.flatnonzero(down >= 0)
    columns = down[inside] * 5 + across[inside]
    m = len(inside)
    weights = sparse.csr_array((np.ones(m, np.float32), (np.arange(m), columns)), shape=(m, 25))
    new, moved, squares = _moved(off, weights, weights, CROPPING)
    np.testing.assert_array_equal(new, true)
    np.testing.assert_array_equal(moved.toarray(), squares.toarray())
    np.testing.assert_allclose(CROPPING.mixed(moved, new), CROPPING.mixed(weights, off), atol=1e-6)
    assert set(moved.nonzero()[1]) == set(inside)


def test_images_whose_copies_are_used_evenly_stay():
    x = np.random.default_rng(1).standard_normal((1, 64)).astype(np.float32)
    weights = sparse.csr_array(np.eye(25, dtype=np.float32))
    new, moved, _ = _moved(x, weights, weights, CROPPING)
    np.testing.assert_array_equal(new, x)
    np.testing.assert_array_equal(moved.toarray(), weights.toarray())


def test_copies_of_an_image_count_together():
    weights = sparse.csr_array(np.eye(4, 50, 23, dtype=np.float32))
    members = np.array([[23, 30], [24, -1], [25, 3], [26, 49]])
    found = of_images(Weighing(weights, weights, members, members * 0.1, members[:, 0]), CROPPING)
    np.testing.assert_array_equal(found.members, [[0, 1], [0, -1], [1, 0], [1, 1]])
    np.testing.assert_array_equal(found.weights.toarray(), [[1, 0], [1, 0], [0, 1], [0, 1]])
