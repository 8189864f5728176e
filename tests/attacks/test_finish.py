"""Which encodings use which vectors, as a matrix of zeros and ones."""

import numpy as np

from unveil.attacks.finish import incidence


def test_incidence_is_the_union_of_its_parts_and_a_vector_used_twice_counts_once():
    parts = [(np.array([0, 2]), np.array([[0, 1], [1, 3]])), (np.array([3]), np.array([[2, 2]]))]
    out = incidence(parts, 5, 4)
    np.testing.assert_array_equal(
        out.toarray(),
        [
            [True, True, False, False],
            [False] * 4,
            [False, True, False, True],
            [False, False, True, False],
            [False] * 4,
        ],
    )
    assert out.nnz == 5
