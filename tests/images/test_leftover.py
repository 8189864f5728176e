"""What known images leave of similarity: the projection written out, and clusters told from
chance."""

import numpy as np
import pytest

from unveil.gram.cosines import UNIT, Alike
from unveil.images.leftover import CLEAR, SMALL, leftover_clusters, strength, without


def groups(m=160, r=400, seed=0, noise=0.7):
    """How alike encodings with three groups of 20 are, and who is in which."""
    rng = np.random.default_rng(seed)
    Z = noise * rng.standard_normal((m, r)) / np.sqrt(r)
    members = np.zeros((m, 3))
    for c in range(3):
        members[20 * c : 20 * c + 20, c] = 1
    Z += members @ rng.standard_normal((3, r)) / np.sqrt(r)
    return Alike.of((Z @ Z.T).astype(np.float32)), members


def test_what_is_left_is_the_projection_written_out():
    all_alike, members = groups()
    everyone = np.arange(160)
    gram = all_alike.tile(everyone, everyone)
    A = members[:, :2] * np.random.default_rng(1).random((160, 1))
    P = A @ np.linalg.pinv(A)
    rows = np.arange(0, 160, 3)
    left = (np.eye(160) - P) @ gram @ (np.eye(160) - P)
    scale = 1 / np.sqrt(np.diag(left)[rows])
    np.testing.assert_allclose(
        without(all_alike, A, gram @ A, rows) / UNIT,
        left[np.ix_(rows, rows)] * scale * scale[:, None],
        atol=1e-3,
    )


def found(known, settled=None, most=3, **options):
    alike, members = groups(**options)
    settled = np.zeros(len(alike), bool) if settled is None else settled
    return leftover_clusters(
        alike, members[:, known], alike.times(members[:, known]), settled, members[:, known] > 0,
        size=30, most=most, labels=None, rng=np.random.default_rng(0),
    )  # fmt: skip


def test_the_group_that_is_not_known_is_found_and_nothing_else():
    for missing in range(3):
        (cluster,) = found([c for c in range(3) if c != missing])
        assert cluster.tolist() == list(range(20 * missing, 20 * missing + 20))
    assert found([0, 1, 2]) == []


def test_settled_encodings_are_left_out_and_no_more_are_found_than_asked():
    settled = np.arange(160) < 40
    (cluster,) = found([0], settled)
    assert cluster.tolist() == list(range(40, 60))
    assert len(found([0], most=1)) == 1
    assert found([0], most=0) == []
    assert found([0], np.ones(160, bool)) == []


@pytest.mark.parametrize("seed", range(3))
def test_chance_makes_no_cluster(seed):
    """Noise alone next to groups that are known."""
    assert found([0, 1, 2], seed=seed, noise=3.0) == []


def test_strength_is_the_median_cosine_by_the_root_of_the_number():
    cosines = groups()[0].cosines
    pairs = (cosines / UNIT)[:20, :20][np.triu_indices(20, 1)]
    expected = np.median(pairs) * np.sqrt(20)
    assert strength(cosines, np.arange(20)) == pytest.approx(expected, rel=1e-4)
    assert strength(cosines, np.arange(1)) == 0
    assert 0 < SMALL < CLEAR < 1
