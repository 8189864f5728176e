"""Pictures: recovered records first, encodings that use them, overlaps with their structure."""

from types import SimpleNamespace

import numpy as np

from unveil.auditing.pictures import draw_pictures
from unveil.data import Dataset
from unveil.encodings import Encodings
from unveil.scheme import Scheme


def test_what_is_shown():
    rng = np.random.default_rng(0)
    values = rng.uniform(-1, 1, (9, 12)).astype(np.float32)
    chosen = np.sort(np.array([rng.choice(9, 2, replace=False) for _ in range(40)]), axis=1)
    Y = np.abs(values[chosen].sum(axis=1))
    outcome = np.zeros(9, np.int8)
    outcome[[4, 7]] = 2
    correlation = np.full(9, np.nan)
    correlation[[4, 7]] = 0.95, 1.0
    shown = np.zeros_like(values)
    shown[[4, 7]] = values[[4, 7]]
    main = SimpleNamespace(outcome=outcome, correlation=correlation, shown=shown)
    data = Dataset(values, tuple("abcdefghi"), "images", "x", (3, 4))
    found = draw_pictures(data, Encodings(Y, Scheme(2)), chosen, main, 9)
    assert found.names[:2] == ("h", "e")
    np.testing.assert_allclose(found.recoveries[:2], found.originals[:2], atol=1e-6)
    span = values.min(), values.max()
    np.testing.assert_allclose(
        found.originals[0].ravel(), (values[7] - span[0]) / (span[1] - span[0]), atol=1e-6
    )
    used = int((chosen == 7).any(axis=1).argmax())
    np.testing.assert_allclose(
        found.encodings[0].ravel() / found.encodings[0].max(), Y[used] / Y[used].max(), rtol=1e-5
    )
    assert (np.diag(found.overlaps) == 2).all()
    assert np.array_equal(found.overlaps, found.overlaps.T)
    assert set(np.unique(found.overlaps)) == {0, 1, 2}


def test_features_have_no_images():
    data = Dataset(np.ones((3, 4), np.float32), ("a", "b", "c"), "features", "x")
    chosen = np.array([[0, 1], [1, 2]])
    main = SimpleNamespace(outcome=np.zeros(3), correlation=np.zeros(3), shown=None)
    found = draw_pictures(data, Encodings(np.ones((2, 4)), Scheme(2)), chosen, main, 3)
    assert found.originals is None
    assert found.overlaps.shape == (2, 2)
