"""What comes with the package is small, licensed and as documented."""

from importlib.resources import files

import numpy as np

from unveil.data.bundled import fashion_mnist


def test_images_and_classes():
    images, classes = fashion_mnist()
    assert images.shape == (240, 28, 28)
    assert images.dtype == np.uint8
    assert images.max() == 255
    assert sorted(classes.count(name) for name in set(classes)) == [24] * 10
    assert len(np.unique(images.reshape(240, -1), axis=0)) == 240


def test_it_is_small_and_its_licence_is_beside_it():
    folder = files("unveil.data") / "bundled"
    assert len((folder / "fashion_mnist.npz").read_bytes()) < 200_000
    assert "MIT License" in (folder / "LICENSE").read_text()
