"""Votes of members for each other's poses: moves one after another, support and votes against plain
loops, and what chance could have."""

from math import comb

import numpy as np

from unveil.gram.aligned import moves_of
from unveil.images.votes import CHANCE, agree, joined, settle_moved, ties, vote

MOVES = moves_of(4, True)
PLACE = {tuple(move): at for at, move in enumerate(MOVES.tolist())}


def between(a, b):
    """The move from a copy (mirrored, down, across) to another one."""
    sign = -1 if a[0] else 1
    return PLACE[a[0] ^ b[0], a[1] - b[1], sign * (a[2] - b[2])]


def aligned(m=120, images=3, each=20, right=0.6, seed=0):
    """Gains and moves: the first encodings share an image each `each`, of which so many pairs have
    the right move; all others any."""
    rng = np.random.default_rng(seed)
    image = np.where(np.arange(m) < images * each, np.arange(m) // each, -1)
    copy = np.stack([rng.integers(0, 2, m), *rng.integers(0, 5, (2, m))], axis=1).tolist()
    gain, move = rng.uniform(0, 0.5, (m, m)), rng.integers(0, len(MOVES), (m, m))
    for a in range(m):
        for b in range(a):
            if image[a] == image[b] >= 0 and rng.random() < right:
                move[a, b] = between(copy[a], copy[b])
                gain[a, b] += 0.3
            mirrored, down, across = MOVES[move[a, b]].tolist()
            move[b, a] = PLACE[mirrored, -down, across if mirrored else -across]
            gain[b, a] = gain[a, b]
    np.fill_diagonal(gain, 0)
    return gain.astype(np.float32), move.astype(np.int16), image, copy


def test_one_move_after_another_is_where_a_pixel_comes_to():
    width = 20

    def to(move, y, x):
        mirrored, down, across = move
        return y + down, (width - 1 - (x + across) if mirrored else x + across)

    for first in range(0, len(MOVES), 7):
        for second in range(0, len(MOVES), 5):
            both = joined(MOVES, first, second)
            assert to(both, 5, 6) == to(MOVES[second], *to(MOVES[first], 5, 6))


def test_support_against_the_loop():
    gain, move, _, _ = aligned(m=40, images=1)
    near = np.argsort(-gain, axis=1, kind="stable")[:, :8]
    found, want = np.zeros((2, 40, 40), np.float32)
    agree(near, gain, move, MOVES, found)
    for a in range(40):
        for c in near[a]:
            for b in near[c]:
                if a != b and joined(MOVES, move[a, c], move[c, b]) == tuple(MOVES[move[a, b]]):
                    want[min(a, b), max(a, b)] += gain[a, c] * gain[c, b]
    np.testing.assert_allclose(found, want, atol=1e-6)
    assert found[:20, :20].sum() > 5 * found[20:, 20:].sum()


def test_votes_against_the_loop():
    gain, move, _, copy = aligned()
    rows = np.arange(12)
    pose = np.array([between(copy[0], copy[i]) for i in rows])
    score, best = np.empty(120, np.float32), np.empty(120, np.int64)
    vote(gain, move, MOVES, 4, rows, pose, score, best)
    for i in range(120):
        votes = {}
        for row, p in zip(rows, pose, strict=True):
            at = PLACE.get(joined(MOVES, p, move[row, i]))
            if row != i and gain[row, i] > 0 and at is not None:
                votes.setdefault(at, []).append(gain[row, i])
        top = max(votes, key=lambda at: sum(votes[at]))
        same, total = len(votes[top]), sum(len(part) for part in votes.values())
        sure = same > 1 and comb(total, same) / len(MOVES) ** (same - 1) < CHANCE / 120
        assert best[i] == (top if sure else -1)
        np.testing.assert_allclose(score[i], sum(votes[top]) if sure else 0, rtol=1e-5)
    assert (best[:20] == [between(copy[0], copy[i]) for i in range(20)]).mean() > 0.9
    assert (best[60:] >= 0).sum() <= 1


def test_members_are_tied_where_their_moves_agree():
    gain, move, _, copy = aligned(m=40, images=1, right=0.5)
    rows = np.arange(20)
    pose = np.array([between(copy[0], copy[i]) for i in rows])
    found = ties(gain, move, MOVES, rows, pose)
    right = [[move[i, j] == between(copy[i], copy[j]) and i != j for j in rows] for i in rows]
    np.testing.assert_allclose(found, np.where(right, gain[:20, :20], 0))


def test_a_cluster_comes_to_rest_at_all_of_an_image_and_its_poses():
    gain, move, image, copy = aligned()
    near = np.argsort(-gain, axis=1, kind="stable")[:, :20]
    rows, pose = np.zeros(30, np.int64), np.zeros(30, np.int64)
    a = 25
    b = next(b for b in near[a] if image[b] == 1 and move[a, b] == between(copy[a], copy[b]))
    none = np.zeros((120, 0), bool), np.zeros(0, np.int64)
    one = np.zeros(120, np.int64)

    def settled(member, sizes, block, k):
        return settle_moved(
            gain, move, MOVES, 4, near, a, b, member, sizes, block, k, rows, pose
        )  # fmt: skip

    count = settled(*none, one, 120)
    assert sorted(rows[:count]) == list(range(20, 40))
    np.testing.assert_array_equal(pose[:count], [between(copy[a], copy[i]) for i in rows[:count]])
    # Of each block as many as it may have; and none where another cluster has them.
    assert settled(*none, np.arange(120) // 4, 2) == 10
    known = np.zeros((120, 1), bool)
    known[20:32] = True
    assert settled(known, np.array([12]), one, 120) == 0
