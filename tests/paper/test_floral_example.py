"""`defn:floral`, `example:floral`: the 6×6 matrix of the paper, and its symmetries."""

from itertools import permutations

import numpy as np

import unveil

EXAMPLE = np.array(
    [
        [2, 0, 1, 1, 1, 1],
        [0, 2, 1, 1, 1, 1],
        [1, 1, 2, 1, 1, 0],
        [1, 1, 1, 2, 0, 1],
        [1, 1, 1, 0, 2, 1],
        [1, 1, 0, 1, 1, 2],
    ]
)


def test_the_example_is_floral_and_no_single_change_leaves_it_so():
    assert unveil.is_floral(EXAMPLE)
    for i in range(6):
        for j in range(i + 1, 6):
            changed = EXAMPLE.copy()
            changed[i, j] = changed[j, i] = 1 - changed[i, j]
            assert not unveil.is_floral(changed)


def test_the_labels_found_explain_every_entry():
    floral = unveil.find_floral_submatrix(unveil.Overlaps.from_array(EXAMPLE, 2))
    A = floral.incidence
    np.testing.assert_array_equal(A @ A.T, EXAMPLE[np.ix_(floral.rows, floral.rows)])


def test_the_matrix_has_48_symmetries_but_only_24_come_from_renaming_images():
    keep = [p for p in permutations(range(6)) if np.array_equal(EXAMPLE[np.ix_(p, p)], EXAMPLE)]
    assert len(keep) == 48
    sets = [{1, 3}, {2, 4}, {1, 4}, {1, 2}, {3, 4}, {2, 3}]
    renamings = {
        tuple(sets.index({name[i - 1] for i in s}) for s in sets)
        for name in permutations((1, 2, 3, 4))
    }
    assert len(renamings) == 24
    assert renamings < set(keep)
