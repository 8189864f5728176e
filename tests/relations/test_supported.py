"""Relations that hang together support each other; one by itself has no support but its own."""

import numpy as np

from unveil.relations.supported import support


def test_pairs_are_counted_in_the_best_split():
    # z_0 − z_1 = z_2 − z_3 = z_4 − z_5, in all three ways; and one of strangers.
    quads = np.array([[0, 1, 2, 3], [0, 1, 4, 5], [2, 3, 4, 5], [6, 7, 8, 9]])
    assert support(quads).tolist() == [2, 2, 2, 1]
    assert support(quads[:0]).tolist() == []


def test_both_pairs_must_be_supported():
    quads = np.array([[0, 1, 2, 3], [0, 1, 4, 5], [0, 1, 6, 7]])
    assert support(quads).tolist() == [1, 1, 1]
