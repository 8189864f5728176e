"""The model and its thresholds: what each word means, and that there is one place for it."""

import ast
from pathlib import Path

import numpy as np
import pytest

from unveil.solve import model
from unveil.solve.model import (
    COMPLETED,
    FEEDBACK,
    FEEDBACK_UNEQUAL,
    GROWTH,
    PIXEL,
    ROW,
    SETTLED,
    SHORT_FEEDBACK,
    Bar,
    PublicPart,
    all_different,
    combinations_of_others,
    merged,
    needed,
    renamed,
    reproduced,
    residual,
    rms,
    size_in_doubt,
    touched_by_null,
    uses,
)

RNG = np.random.default_rng(0)


def sums(k, n=12, m=60, d=400):
    x = RNG.standard_normal((n, d))
    members = np.array([RNG.choice(n, k, replace=False) for _ in range(m)])
    return x, members, np.abs(x[members].sum(axis=1))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_right_row_has_no_residual_and_a_wrong_one_misses_every_bar(k):
    x, members, y = sums(k)
    assert residual(y, None, x, members).max() == 0
    miss = residual(y, None, x, np.roll(members, 1, axis=0))
    wrong = (np.sort(members, axis=1) != np.sort(np.roll(members, 1, axis=0), axis=1)).any(axis=1)
    for bar in (FEEDBACK, FEEDBACK_UNEQUAL, SHORT_FEEDBACK, GROWTH, SETTLED):
        fits = reproduced(miss, bar.near * rms(y), bar.share)
        np.testing.assert_array_equal(fits, ~wrong)


def test_chance_is_what_the_table_says():
    """Two unrelated Gaussian sums are within ε·rms of each other at 1.13·ε of the pixels."""
    a, b = np.abs(RNG.standard_normal((2, 400_000)))
    for near in (0.02, 0.01):
        assert np.mean(np.abs(a - b) <= near) == pytest.approx(1.13 * near, rel=0.05)


def test_bars_get_sharper_as_vectors_get_better():
    assert FEEDBACK.near > SHORT_FEEDBACK.near > GROWTH.near >= SETTLED.near == ROW > PIXEL
    assert FEEDBACK.share < SHORT_FEEDBACK.share < GROWTH.share < SETTLED.share < COMPLETED < 1


def test_a_public_part_is_added_and_counted():
    x, members, _ = sums(2)
    P = RNG.standard_normal((5, 400)).astype(np.float32)
    part = PublicPart(np.arange(120).reshape(60, 2) % 5, P, 0.5)
    rows = np.array([3, 7])
    c = part.total(rows)
    np.testing.assert_allclose(c, 0.5 * (P[part.names[rows, 0]] + P[part.names[rows, 1]]), 1e-6)
    y = np.abs(x[members[rows]].sum(axis=1) + c)
    assert residual(y, c, x, members[rows]).max() == 0
    assert residual(y, None, x, members[rows]).max() > 0.1


def test_a_bar_counts_its_own_limits_in():
    miss = np.array([[0.0, 0.1, 0.1, 0.2]])
    assert reproduced(miss, *Bar(0.1, 0.75)).all()
    assert not reproduced(miss, *Bar(0.1, 0.76)).any()
    assert not reproduced(miss, *Bar(0.09, 0.75)).any()


def test_the_rms_of_nothing_is_one():
    assert rms(np.zeros((3, 4))) == rms(np.empty((0, 4))) == 1.0
    assert rms(np.full((3, 4), -2.0, np.float32)) == 2.0


def test_uses_counts_different_subsets_in_any_order():
    members = np.array([[0, 1], [1, 0], [0, 1], [1, 2], [3, 2]])
    np.testing.assert_array_equal(uses(members, 6), [1, 2, 2, 1, 0, 0])
    np.testing.assert_array_equal(uses(members[:0], 3), [0, 0, 0])


def test_rows_that_lonely_columns_explain_are_dropped_to_the_end_of_the_chain():
    members = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 4]])  # 4 is lonely, then 3 is
    np.testing.assert_array_equal(needed(members), [True, True, True, False, False, False])
    assert not needed(members, 3).any()
    assert not len(needed(members[:0]))


def test_copies_of_a_vector_get_one_name_and_unsolved_ones_stay_apart():
    x = np.random.default_rng(0).standard_normal((6, 40))
    x[4], x[5] = x[1], np.nan
    members = np.array([[0, 4], [4, 2], [5, 3]])
    np.testing.assert_array_equal(merged(x, members), [[0, 1], [1, 2], [5, 3]])
    # No threshold knows the unit of the data.
    np.testing.assert_array_equal(merged(1e-12 * x, members), merged(x, members))


def test_names_are_counted_from_zero_and_can_be_undone():
    members = np.array([[7, 2], [2, 9]])
    used, new = renamed(members)
    np.testing.assert_array_equal(new, [[1, 0], [0, 2]])
    np.testing.assert_array_equal(used[new], members)
    np.testing.assert_array_equal(all_different(np.array([[1, 2], [3, 3]])), [True, False])


def test_null_vectors_and_dependences_are_seen():
    W = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 0]], float)
    np.testing.assert_array_equal(touched_by_null(W.T @ W), [True, True, False, False])
    x = RNG.standard_normal((4, 30))
    x[3] = x[0] - 2 * x[1]
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_array_equal(combinations_of_others(unit @ unit.T), [True, True, False, True])


@pytest.mark.parametrize(("numbers", "least"), [(100, 0.2), (10_000, 0.0354), (10**8, 0.02)])
def test_a_size_is_in_doubt_beyond_five_standard_errors(numbers, least):
    assert not size_in_doubt(1 + 0.99 * least, numbers)
    assert size_in_doubt(1 - 1.01 * least, numbers)


def test_every_number_of_the_table_has_its_reason():
    tree = ast.parse(Path(model.__file__).read_text())
    for place, node in enumerate(tree.body):
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]).replace("(", "")[0].isupper()
        ):
            below = tree.body[place + 1]
            name = ast.unparse(node.targets[0])
            if name in ("Values", "Members"):
                continue
            assert isinstance(below, ast.Expr), name
            assert len(ast.literal_eval(below.value)) > 40, name
