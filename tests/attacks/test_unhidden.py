"""Data that are not negative: taking absolute values hides nothing."""

import numpy as np
import pytest
from tests.attacks.test_relations import encode

import unveil
from unveil.attacks.unhidden import nothing_hidden
from unveil.records import InputError


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_counts_come_back_exactly(k):
    x = np.random.default_rng(k).poisson(3, (40, 70)).astype(np.float32)
    _, y = encode(x, 400, k, 1)
    recovery = unveil.recover(unveil.Encodings(y, unveil.Scheme(k), pixel_rms=None), rng=0)
    scores = unveil.score(recovery, x)
    assert recovery.attack == "unhidden"
    assert not recovery.signed
    assert (scores.exact, scores.wrong) == (40, 0)


def test_a_sign_that_nothing_ties_to_the_rest_is_in_doubt():
    rng = np.random.default_rng(0)
    x = rng.poisson(3, (30, 50)).astype(np.float32) + rng.random((30, 50)).astype(np.float32)
    subsets, _ = encode(x, 300, 2, 1)
    # At the first pixel two vectors that never meet, of opposite signs, and nothing else: y is
    # linear all the same.
    met = {tuple(pair) for pair in subsets.tolist()}
    u, v = next((i, j) for i in range(30) for j in range(i + 1, 30) if (i, j) not in met)
    x[:, 0] = 0
    x[u, 0], x[v, 0] = 2.5, -3.5
    y = np.abs(x[subsets].sum(axis=1) / np.float32(np.sqrt(2)))
    recovery = unveil.recover(
        unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None), attack="unhidden", rng=0
    )
    scores = unveil.score(recovery, x)
    assert scores.wrong == 0
    assert recovery.doubtful is not None
    assert recovery.doubtful[:, 0].any()


def test_hidden_signs_are_seen_and_refused():
    x = np.random.default_rng(1).standard_normal((40, 70)).astype(np.float32)
    _, y = encode(x, 300, 2, 1)
    encodings = unveil.Encodings(y, unveil.Scheme(2), pixel_rms=None)
    assert not nothing_hidden(encodings)
    with pytest.raises(InputError, match="signs were hidden"):
        unveil.recover(encodings, attack="unhidden")
