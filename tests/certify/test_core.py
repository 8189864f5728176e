"""Which vectors make a core: random designs, and weights that prove what even ones do not."""

import numpy as np
import pytest

from unveil.certify.core import core
from unveil.certify.heavy import even_weights, least_eigenvalue, whole_columns_heavy


@pytest.mark.parametrize(("n", "m", "k"), [(60, 300, 2), (60, 300, 3), (60, 300, 4), (100, 400, 6)])
def test_random_designs_are_cores_almost_whole(n, m, k):
    rng = np.random.default_rng(0)
    members = np.unique([np.sort(rng.choice(n, k, replace=False)) for _ in range(m)], axis=0)
    for repeats in (False, True):
        found = core(members, n, np.ones(n, bool), repeats=repeats).sum()
        assert found >= 0.9 * n or (repeats and k > 3)


def test_rows_weighed_anew_prove_what_even_weights_do_not():
    """Random designs at m = 3n of which no core was found; 40 and 50 vectors."""
    for k, n, seed in ((3, 40, 1), (4, 50, 5)):
        rng = np.random.default_rng([seed, n, k])
        members = np.sort(np.argsort(rng.random((3 * n, n)), axis=1)[:, :k], axis=1)
        members = np.unique(members, axis=0)
        weight = even_weights(members, n)
        floor = least_eigenvalue(members, n, weight)
        assert not whole_columns_heavy(members, n, weight, floor, False)[0].all()
        assert core(members, n, np.ones(n, bool), repeats=False).all()
