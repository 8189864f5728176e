"""Relations under noise: records come back as well as least squares with everything known would
have them."""

import numpy as np
import pytest
from tests.attacks.test_relations import encode, table

import unveil
from unveil.checks import InputError


def test_a_table_under_noise():
    x = table(30, 30, 0)
    subsets, _ = encode(x, 300, 2, 1)
    z = x[subsets].sum(axis=1) / np.sqrt(2)
    y = np.abs(z + 0.01 * np.random.default_rng(2).standard_normal(z.shape)).astype(np.float32)
    recovery = unveil.recover(
        unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="noisy-relations", rng=0
    )
    assert not recovery.verified.any()
    error = np.array(
        [np.sqrt(np.mean((np.abs(recovery.vectors) - np.abs(v)) ** 2, axis=1)).min() for v in x]
    )
    assert (error < 0.02).sum() >= 27


def test_what_it_is_not_for_is_refused():
    with pytest.raises(InputError, match="k_private=2"):
        unveil.recover(
            unveil.Encodings(np.ones((5, 4)), unveil.Scheme(3)), attack="noisy-relations"
        )
