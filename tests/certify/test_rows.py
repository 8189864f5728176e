"""What hangs together."""

import numpy as np

from unveil.certify.rows import connected_rows, gram, linked, local_rows

BOWTIE = np.array([[0, 1], [1, 2], [0, 2], [2, 3], [3, 4], [2, 4]])


def test_rows_that_a_sign_change_can_part():
    theta = np.array(
        [[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]
    )  # one even cycle; the chord stands alone
    assert connected_rows(BOWTIE, 5)
    assert not connected_rows(theta, 4)


def test_local_names_and_links():
    rows, names = local_rows(BOWTIE, np.array([False, False, True, True, True]))
    assert rows.tolist() == [[0, 1], [1, 2], [0, 2]]
    assert names.tolist() == [2, 3, 4]
    assert len(set(linked(np.array([[0, 1], [2, 3]]), 4))) == 2
    assert gram(rows, 3).tolist() == [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
