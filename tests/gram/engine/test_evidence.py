"""Evidence: fractions and errors of a known mixture, the sparse matrix against a dense twin."""

import numpy as np
import pytest

from unveil import Scheme
from unveil.gram.engine.blocks import Block, _count, _weigh
from unveil.gram.engine.evidence import assemble, weigh_evidence
from unveil.gram.engine.plan import make_plan
from unveil.gram.levels import folded_levels


def test_fractions_and_errors_of_a_known_mixture():
    # 499,500 scores drawn from the normal law of each level. Fractions within 5 % and errors within
    # 5 %: both more than five standard errors (about 30,000 pairs at overlap 1, 10,000 errors).
    m, d, rng = 1000, 300, np.random.default_rng(0)
    levels = folded_levels(Scheme(2))
    plan = make_plan(levels, m, d, statistic="folded")
    pairs = m * (m - 1) // 2
    true = rng.choice(3, size=pairs, p=[0.93, 0.06, 0.01])
    score = (
        levels.mean[0, true] + levels.sd[0, true] / np.sqrt(d) * rng.standard_normal(pairs)
    ).astype(np.float32)
    seen = score >= plan.cuts[-1]
    flat = np.zeros_like(levels.skew)
    q, rival, margin = _weigh(
        score[seen],
        np.zeros(seen.sum(), np.int8),
        levels.balanced(),
        levels.mean,
        levels.sd,
        flat,
        d,
    )
    found = np.zeros(pairs, int)
    found[seen] = q
    evidence = weigh_evidence(_count(q, rival, margin, 3), plan, levels)
    np.testing.assert_allclose(evidence.fractions, np.bincount(true) / pairs, rtol=0.05)
    assert evidence.expected_errors == pytest.approx((found != true).sum(), rel=0.05)
    assert evidence.missed == pytest.approx(((found == 0) & (true > 0)).sum(), rel=0.15)


def test_nothing_seen_means_nothing_expected():
    levels = folded_levels(Scheme(2))
    plan = make_plan(levels, 100, 20_000, statistic="folded")
    evidence = weigh_evidence(np.zeros((3, 2, 320), np.int64), plan, levels)
    assert evidence.expected_errors < 1e-3
    assert evidence.fractions[0] == pytest.approx(1, abs=1e-3)


def test_a_single_encoding_has_no_pairs():
    levels = folded_levels(Scheme(2))
    evidence = weigh_evidence(
        np.zeros((3, 2, 320), np.int64), make_plan(levels, 1, 9, statistic="folded"), levels
    )
    assert evidence.expected_errors == 0


def test_the_matrix_equals_the_dense_twin_and_its_rows_are_sorted():
    rng, m = np.random.default_rng(0), 23
    dense = np.triu(rng.choice(3, size=(m, m), p=[0.7, 0.2, 0.1]), 1)
    blocks = []
    for i in range(0, m, 8):
        for j in range(i, m, 8):
            r, c = np.nonzero(dense[i : i + 8, j : j + 8])
            r, c = (r + i).astype(np.int32), (c + j).astype(np.int32)
            q = dense[r, c].astype(np.int8)
            blocks.append(
                Block(
                    r,
                    c,
                    q,
                    (q - 1).astype(np.int8),
                    (r + c).astype(np.float32),
                    np.zeros((3, 2, 320), np.int64),
                )
            )
    fractions = np.array([0.5, 0.3, 0.2])
    matrix, confidence = assemble(blocks, m, 2, fractions)
    expected = dense + dense.T + 2 * np.eye(m, dtype=int)
    np.testing.assert_array_equal(matrix.toarray(), expected)
    for row in range(m):
        assert (np.diff(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]) > 0).all()
    trust = matrix.astype(float).copy()
    trust.data = confidence
    assert abs(trust - trust.T).max() == 0
    i, j = np.argwhere(dense == 2)[0]
    assert trust[i, j] == pytest.approx(1 / (1 + 0.3 / 0.2 * np.exp(-(i + j))))
    assert (trust.diagonal() == 1).all()
