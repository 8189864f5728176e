"""Bytes of pixels in the usual ranges, and of others from the darkest to the brightest."""

import numpy as np
import pytest

from unveil.present.pixels import as_bytes


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([-1.0, 0.0, 1.0], [0, 128, 255]),
        ([0.0, 0.5, 1.0], [0, 128, 255]),
        ([-1.2, 1.3], [0, 255]),
        ([0.0, 255.0], [0, 255]),
        ([-4.0, 4.0], [0, 255]),
    ],
)
def test_ranges(values, expected):
    assert as_bytes(np.array(values)).tolist() == expected
