"""Groups of equal vectors against comparing all pairs; zeros; memory-mapped files."""

import numpy as np
import pytest

from unveil.supports.folded.survey import _hash_rows, mean_square, survey_public


def test_groups_are_those_of_comparing_all_pairs():
    rng = np.random.default_rng(0)
    vectors = rng.integers(0, 2, (60, 5)).astype(np.float32)
    public = survey_public(vectors, 16)
    groups = {}
    for i, row in enumerate(vectors.tolist()):
        if any(row):
            groups.setdefault(tuple(row), []).append(i)
    assert public.interchangeable == tuple(sorted(tuple(g) for g in groups.values() if len(g) > 1))
    assert np.flatnonzero(public.usable).tolist() == sorted(g[0] for g in groups.values())
    assert public.count == len(groups)


def test_zeros_are_not_usable_and_do_not_count_in_the_power():
    vectors = np.random.default_rng(0).standard_normal((8, 100)).astype(np.float32)
    vectors[[2, 5]] = 0
    public = survey_public(vectors, 4)
    assert np.flatnonzero(~public.usable).tolist() == [2, 5]
    assert public.interchangeable == ()
    assert public.power == pytest.approx(
        float((np.delete(vectors, [2, 5], 0) ** 2).mean()), rel=1e-5
    )


def test_nothing_but_zeros_leaves_nothing():
    assert survey_public(np.zeros((3, 4), np.float32), 2).count == 0


def test_minus_zero_is_zero():
    vectors = np.array([[1, 0.0], [1, -0.0], [0, 1]], np.float32)
    assert survey_public(vectors, 2).interchangeable == ((0, 1),)


def test_the_hash_equals_its_plain_twin_and_the_order_of_pixels_counts():
    rows = np.random.default_rng(1).standard_normal((4, 33)).astype(np.float32)
    hashes, squares = np.empty(4, np.uint64), np.empty(4)
    _hash_rows(rows, hashes, squares)
    for row, h in zip(rows, hashes, strict=True):
        bits = row.view(np.uint32).tolist()
        assert (
            int(h)
            == sum(b * (j * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) for j, b in enumerate(bits))
            % 2**64
        )
    np.testing.assert_allclose(squares, (rows.astype(np.float64) ** 2).sum(axis=1), rtol=1e-6)
    other = np.empty(4, np.uint64)
    _hash_rows(np.ascontiguousarray(rows[:, ::-1]), other, squares)
    assert (other != hashes).all()


def test_the_mean_square_is_the_same_in_blocks():
    vectors = np.random.default_rng(0).standard_normal((20, 30)).astype(np.float32)
    expected = float((vectors.astype(np.float64) ** 2).mean())
    for numbers in (1, 64, 10_000):
        assert mean_square(vectors, numbers) == pytest.approx(expected, rel=1e-12)
