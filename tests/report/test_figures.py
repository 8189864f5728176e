"""Marks are where the numbers say; images fit the page whatever their size."""

import base64
import io

import numpy as np
import pytest

from unveil.auditing.result import CurvePoint, Pictures, RecordRisk
from unveil.report import figures


def point(m, exact, low=0.0, high=1.0):
    return CurvePoint(m, exact, low, high, 0.0, 5)


def record(name, outcome="exact"):
    return RecordRisk(0, name, outcome, "verified", 0.0, 1.0, 3, 10, "")


def decoded(uri):
    image = pytest.importorskip("PIL.Image", reason="Pillow reads back what is written")
    return np.asarray(
        image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGB")
    )


def test_the_curve_is_linear_in_m_and_in_the_fraction():
    curve = figures.curve(
        [point(800, 1.0, 0.9, 1.0), point(400, 0.25, 0.2, 0.3), point(200, 0.0)], 800, 960, 400
    )
    first, second, third = curve.dots
    assert [dot.x for dot in curve.dots] == pytest.approx(
        [curve.left + (curve.right - curve.left) * share for share in (0.25, 0.5, 1)], abs=0.06
    )
    assert (first.y, third.y) == (curve.bottom, curve.top)
    assert second.y == pytest.approx(curve.bottom - (curve.bottom - curve.top) / 4, abs=0.06)
    assert curve.top <= second.high < second.y < second.low <= curve.bottom
    assert curve.release == third.x
    assert not curve.logarithmic
    assert [mark.text for mark in curve.across] == ["0", "200", "400", "600", "800"]


def test_a_wide_range_of_m_gets_a_logarithmic_axis():
    curve = figures.curve(
        [point(10, 0), point(100, 0.5), point(1000, 1), point(10_000, 1)], 10_000, 960, 400
    )
    steps = np.diff([dot.x for dot in curve.dots])
    assert curve.logarithmic
    np.testing.assert_allclose(steps, steps[0], atol=0.11)
    assert [mark.text for mark in curve.across] == ["10", "100", "1,000", "10,000"]


@pytest.mark.parametrize("m", [1, 7, 999, 123_456])
@pytest.mark.parametrize("width", [340, 960])
def test_marks_and_dots_stay_inside_and_marks_apart(m, width):
    curve = figures.curve([point(m, 0.5)], m, width, 300)
    inside = [mark.at for mark in curve.across] + [dot.x for dot in curve.dots]
    assert all(curve.left <= x <= curve.right for x in inside)
    assert min(np.diff([mark.at for mark in curve.across]), default=99) > 35


def test_fractions_beyond_the_axis_are_cut_and_no_points_are_no_curve():
    curve = figures.curve([point(10, 0.5, -0.2, 1.4)], 10, 960, 400)
    assert (curve.dots[0].low, curve.dots[0].high) == (curve.bottom, curve.top)
    assert figures.curve([], 10, 960, 400) is None


def test_one_hundred_incompressible_images_of_any_size_fit():
    noise = np.random.default_rng(0).random((100, 150, 150, 3), dtype=np.float32)
    tiles, shrunk = figures.tiles(Pictures(noise, noise, noise), ())
    assert shrunk > 1
    assert len(tiles) == 100
    # Every PNG has a header of its own, which the budget does not count.
    assert sum(len(uri) for tile in tiles for _, uri in tile.images) < figures.BUDGET + 300 * 200


def test_images_are_averaged_in_blocks_and_small_ones_are_left_alone():
    image = np.arange(16, dtype=np.float64).reshape(4, 4)
    np.testing.assert_array_equal(figures._shrunk(image, 2), [[2.5, 4.5], [10.5, 12.5]])
    np.testing.assert_array_equal(figures._shrunk(image, 3)[1, 1], 15)
    np.testing.assert_array_equal(figures._shrunk(image, 1), image)
    grey = np.linspace(0, 1, 4, dtype=np.float32).reshape(1, 2, 2)
    tiles, shrunk = figures.tiles(Pictures(originals=grey), ())
    assert shrunk == 1
    assert [label for label, _ in tiles[0].images] == ["original"]
    np.testing.assert_array_equal(decoded(tiles[0].images[0][1])[..., 0], [[0, 85], [170, 255]])


def test_values_outside_the_range_are_cut_and_a_missing_image_is_empty():
    images = np.stack(
        [np.full((2, 2), 7.0), np.full((2, 2), -7.0), np.full((2, 2), np.nan)]
    ).astype(np.float32)
    white, black, none = (
        tile.images[0][1] for tile in figures.tiles(Pictures(recoveries=images), ())[0]
    )
    assert decoded(white).min() == 255
    assert decoded(black).max() == 0
    assert none == ""
    assert figures.image_uris(images) == [white, black, none]


def test_a_caption_tells_the_outcome_only_of_the_record_it_names():
    two = np.zeros((3, 2, 2), np.float32)
    records = (record("a"), record("b", "approximate"), record("b", "exact"))
    tiles, _ = figures.tiles(Pictures(two, names=("a", "b")), records)
    assert [(tile.name, tile.outcome) for tile in tiles] == [
        ("a", "exact"),
        ("b", ""),
        ("record 2", ""),
    ]


def test_no_images_are_no_tiles():
    assert figures.tiles(Pictures(), ()) == ((), 1)


def test_whole_overlaps_have_one_colour_each_and_brighter_is_more():
    values = np.array([[2, 0, 1], [0, 2, 0], [1, 0, 2]], np.float32)
    matrix = figures.matrix(values)
    assert [text for text, _ in matrix.legend] == ["0", "1", "2"]
    colours = {
        text: np.frombuffer(bytes.fromhex(colour[1:]), np.uint8) for text, colour in matrix.legend
    }
    np.testing.assert_array_equal(
        decoded(matrix.image), [[colours[str(int(v))] for v in row] for row in values]
    )
    brightness = [colours[text] @ np.array([0.2126, 0.7152, 0.0722]) for text in "012"]
    assert brightness == sorted(brightness)


@pytest.mark.parametrize("size", [1, 513, 700])
def test_matrices_of_any_size_are_drawn_small(size):
    matrix = figures.matrix(np.full((size, size), 0.4, np.float32))
    assert matrix.size == size
    assert len(decoded(matrix.image)) <= figures.LARGEST_MATRIX
    assert [text for text, _ in matrix.legend] == ["0", "0.2", "0.4"]


def test_a_matrix_of_nothing_is_not_drawn_and_one_of_zeros_is():
    assert figures.matrix(None) is None
    assert figures.matrix(np.empty((0, 0), np.float32)) is None
    assert figures.matrix(np.zeros((2, 2), np.float32)) is not None


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (0.5, "50%"),
        (1, "100%"),
        (0.99999, "over 99.9%"),
        (0.12345, "12.3%"),
        (1e-5, "0.001%"),
    ],
)
def test_percent(share, text):
    assert figures.percent(share) == text
