"""The PNG writer against a reader that is not ours."""

import base64
import io
import zlib

import numpy as np
import pytest

from unveil.report.png import data_uri, png

Image = pytest.importorskip("PIL.Image", reason="Pillow reads back what is written")


def read(data):
    with Image.open(io.BytesIO(data)) as image:
        image.load()
        return image.mode, np.asarray(image.convert("RGB") if image.mode == "P" else image)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (28, 28), (7, 4, 3), (32, 32, 3)])
def test_every_pixel_comes_back(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    mode, back = read(png(pixels))
    assert mode == ("L" if len(shape) == 2 else "RGB")
    np.testing.assert_array_equal(back, pixels)


def test_smooth_pictures_come_back_too_and_take_less_room_for_their_filter():
    ramp = np.add.outer(np.arange(64), np.arange(64) * 2 % 251).astype(np.uint8)
    data = png(ramp)
    np.testing.assert_array_equal(read(data)[1], ramp)
    plain = np.insert(ramp, 0, 0, axis=1).tobytes()
    assert len(data) < len(zlib.compress(plain, 9))


def test_a_palette_gives_every_index_its_colour():
    palette = np.array([[1, 2, 3], [200, 100, 0], [9, 9, 9]], dtype=np.uint8)
    indices = np.array([[0, 1, 2], [2, 1, 0]], dtype=np.uint8)
    mode, back = read(png(indices, palette))
    assert mode == "P"
    np.testing.assert_array_equal(back, palette[indices])


def test_a_data_uri_holds_the_bytes():
    head, body = data_uri(b"abc").split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body) == b"abc"
