"""Equal encodings are one kind, within rounding; their public parts count too."""

import numpy as np

from unveil.relations.repeats import distinct


def test_copies_are_found_and_others_are_not():
    rng = np.random.default_rng(0)
    y = np.abs(rng.integers(-9, 9, (50, 30)) / 7).astype(np.float32)
    y[40] = y[3] * np.float32(1 + 2**-23)
    y[41] = y[3]
    y[42] = y[5]
    once, copies = distinct(y, None)
    assert len(once) == 47
    assert copies[40] == copies[41] == copies[3]
    assert copies[42] == copies[5]
    np.testing.assert_allclose(y[once][copies], y, rtol=1e-6)


def test_other_public_parts_make_other_encodings():
    rng = np.random.default_rng(1)
    y, c = np.abs(rng.standard_normal((2, 10, 8))).astype(np.float32)
    y[4], y[5], c[5] = y[2], y[2], c[2]
    once, copies = distinct(y, c)
    assert len(once) == 9
    assert copies[5] == copies[2] != copies[4]
