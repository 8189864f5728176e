"""Instances that once made an attack verify a wrong vector: none is any more, and of a right claim
what is certain still is."""

import numpy as np
import pytest

import unveil
from unveil import Encodings, Overlaps, Scheme, certify, recover, score, simulate


def encode(X, rows, scheme, rms=1.0):
    return Encodings(np.abs(X[np.array(rows)].sum(axis=1) * scheme.private_weight), scheme, rms)


def two_groups(seed, h=9):
    """Two groups that meet in one vector, which is 0 at pixel 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((2 * h + 1, 200)).astype(np.float32)
    X[h, 0] = 0
    rows = [rng.choice(h + 1, 2, False) for _ in range(50)] + [
        h + rng.choice(h + 1, 2, False) for _ in range(50)
    ]
    return X, np.array(rows), encode(X, rows, Scheme(2))


@pytest.mark.parametrize("true", [0, 1])
def test_public_vectors_of_equal_magnitudes_are_not_told_apart(true):
    rng = np.random.default_rng(0)
    p = rng.standard_normal(200)
    P = np.stack([p, p * rng.choice([-1, 1], 200), rng.standard_normal(200)]).astype(np.float32)
    recovery = recover(Encodings(np.abs(P[[true, true, 2]]), Scheme(0, 1)), P, rng=0)
    status = dict(zip(recovery.evidence["public"], recovery.status.tolist(), strict=True))
    assert status.pop(2) == "ambiguous"
    assert list(status.values()) == ["ambiguous"]


@pytest.mark.parametrize("seed", [0, 2])
def test_a_public_list_that_holds_a_private_vector(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 400)).astype(np.float32)
    P = (0.6 * rng.standard_normal((12, 400))).astype(np.float32)
    P[0] = X[0]
    sim = simulate(Scheme(1, 2), private=X, public=P, m=80, rng=seed)
    encodings = Encodings(sim.encodings.values, Scheme(1, 2), 1.0)
    assert score(recover(encodings, P, rng=0), X).wrong == 0
    scores = score(certify(encodings, X, sim.selection.private, P, sim.selection.public), X)
    assert (scores.exact, scores.wrong) == (7, 0)
    # Record 0 and public vector 0 have traded places.
    members, supports = sim.selection.private, sim.selection.public
    V = np.vstack([X, X[:1]])
    assert not certify(encodings, V, np.where(members == 0, 8, members), P, supports).verified[8]


def test_a_public_vector_that_stands_with_private_ones_of_the_list():
    """{x₀; p}, {x₁; p}, {x₂; p} are {p; x₀}, {p; x₁}, {p; x₂} where x₀, x₁, x₂ are in the list as
    well."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 300)).astype(np.float32)
    P = np.vstack([X[:3], rng.standard_normal((5, 300))]).astype(np.float32)
    rows = np.array([(i, j) for i in range(10) for j in range(3, 8)])
    scheme = Scheme(1, 1)
    values = np.abs(scheme.private_weight * X[rows[:, 0]] + scheme.public_weight * P[rows[:, 1]])
    encodings = Encodings(values, scheme, 1.0)
    assert score(recover(encodings, P, rng=0), X).wrong == 0
    scores = score(certify(encodings, X, rows[:, :1], P, rows[:, 1:]), X)
    assert (scores.exact, scores.wrong) == (7, 0)


@pytest.mark.parametrize("seed", [5, 12])
def test_a_zero_that_joins_two_groups_leaves_their_signs_open(seed):
    X, rows, encodings = two_groups(seed)
    for attack in ("exact", "line-graph"):
        assert score(recover(encodings, attack=attack, rng=0), X).wrong == 0
    turned = X.copy()
    turned[:9, 0] *= -1
    found = certify(encodings, turned, rows)
    scores = score(found, X)
    assert (scores.wrong, scores.exact) == (0, int(found.verified.sum()))
    assert scores.exact >= 11
    assert found.doubtful[found.verified][:, 0].any()


def test_three_binary_pixels_among_continuous_ones():
    for seed in range(1):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 250)).astype(np.float32)
        X[:, :3] = rng.choice([-1, 1], (30, 3))
        values = simulate(Scheme(2), private=X, m=120, rng=seed).encodings.values
        scores = score(recover(Encodings(values, Scheme(2), 1.0), attack="exact", rng=0), X)
        assert scores.wrong == 0
        assert scores.exact >= 27


def test_binary_pixels_say_too_little():
    """20 pixels ±1: subsets fit by chance, so that nothing may be verified, with the true overlaps
    at hand or not."""
    rng = np.random.default_rng(2)
    for _ in range(3):
        X = rng.choice([-1.0, 1.0], (14, 20)).astype(np.float32)
        rows = np.array([rng.choice(14, 2, False) for _ in range(60)])
        encodings = encode(X, rows, Scheme(2), None)
        W = np.zeros((60, 14), int)
        np.put_along_axis(W, rows, 1, axis=1)
        told = Overlaps.from_array(W @ W.T, 2)
        recovery = recover(encodings, attack="line-graph", overlaps=told, rng=0)
        assert not recovery.verified.any()
        assert not unveil.certify(encodings, X, rows).verified.any()


def test_four_vectors_met_evenly_and_six_met_in_three():
    for group, k in ((4, 4), (6, 4)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((group + 10, 600)).astype(np.float32)
        half = group // 2
        rows = [
            np.append(rng.choice(group, half, False), group + rng.choice(10, k - half, False))
            for _ in range(60)
        ]
        rows += [group + rng.choice(10, k, False) for _ in range(60)] + (
            [np.arange(4)] if group == 4 else []
        )
        scores = score(recover(encode(X, rows, Scheme(k)), attack="exact", rng=0), X)
        assert scores.wrong == 0


@pytest.mark.parametrize(
    ("attack", "rms"), [("exact", 1.0), ("exact", None), ("line-graph", None), ("tensor", 1.0)]
)
def test_a_chain_with_another_reading(attack, rms):
    rng, n = np.random.default_rng(0), 20
    G = rng.standard_normal((n + 2, 400)).astype(np.float32)
    X = G.copy()
    X[n] += G[0] - G[1]
    X[n + 1] += G[1] - G[0]
    rows = [rng.choice(n, 2, False) for _ in range(80)] + [[1, n], [n, n + 1], [n + 1, 0]]
    encodings = encode(X, rows, Scheme(2), rms)
    assert score(recover(encodings, attack=attack, rng=0), X).wrong == 0
    scores = score(certify(encodings, X, np.array(rows)), X)
    assert scores.wrong == 0
    assert scores.exact == 20


@pytest.mark.parametrize(("n", "m", "d"), [(14, 30, 30), (10, 25, 60), (16, 40, 200)])
def test_mixup_with_wrong_members_that_are_absorbed(n, m, d):
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)
        sim = simulate(Scheme(3, 0, "equal", "kept"), private=X, m=m, rng=seed)
        assert score(recover(sim.encodings, rng=0), X).wrong == 0


@pytest.mark.parametrize("seed", [0, 4, 7])
def test_few_vectors_of_ones_own_with_a_public_part(seed):
    """Five to eight vectors, whose size nobody told: public vectors may change places."""
    rng = np.random.default_rng(seed)
    n, k_public, m = (int(rng.integers(*ends)) for ends in ((5, 9), (1, 5), (20, 60)))
    d, k = int(rng.choice([60, 120, 300])), int(rng.choice([2, 2, 3]))
    scheme = Scheme(k, k_public, str(rng.choice(["equal", "paper"])))
    X, P = (rng.standard_normal((count, d)).astype(np.float32) for count in (n, 20))
    sim = simulate(scheme, private=X, public=P, m=m, rng=seed)
    assert score(recover(sim.encodings, P, attack="exact", rng=0), X).wrong == 0


@pytest.mark.parametrize("rms", [None, 1.0])
def test_true_overlaps_and_hardly_more_rows_than_vectors(rms):
    """Nine vectors mixed three at a time in 27 rows: six were verified, all of them wrong."""
    rng = np.random.default_rng([1, 2948])
    k = int(rng.choice([2, 3, 4, 5]))
    n = int(rng.integers(k + 3, k + 9))
    m, d = int(n * rng.uniform(1.4, 3.5)), int(rng.choice([60, 150, 400, 1000]))
    X = rng.standard_normal((n, d)).astype(np.float32)
    rows = np.array([np.sort(rng.choice(n, k, False)) for _ in range(m)])
    W = np.zeros((m, n), int)
    np.put_along_axis(W, rows, 1, axis=1)
    told = Overlaps.from_array(W @ W.T, k)
    recovery = recover(encode(X, rows, Scheme(k), rms), attack="tensor", overlaps=told, rng=0)
    assert (k, n, m, d) == (3, 9, 27, 400)
    assert score(recovery, X).wrong == 0


def test_few_binary_pixels_and_few_rows():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 250)).astype(np.float32)
        X[:, :3] = rng.choice([-1, 1], (30, 3))
        values = simulate(Scheme(2), private=X, m=60, rng=seed).encodings.values
        recovery = recover(Encodings(values, Scheme(2), 1.0), attack="line-graph", rng=0)
        assert score(recovery, X).wrong == 0


def test_few_columns_with_noise_claim_nothing():
    """Four columns and noise: some twenty vectors 'fit' most encodings, and not one is right."""
    X = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    recovery = recover(
        simulate(Scheme(2), private=X, m=120, rng=1, noise=0.05).encodings, attack="exact", rng=0
    )
    assert not recovery.verified.any()


def test_damaged_encodings_are_not_reproduced_and_harm_nobody():
    sim = simulate(Scheme(2), 15, m=90, d=200, rng=0)
    values = sim.encodings.values.copy()
    values[3, :20] += 0.5
    values[8] += 0.01 * np.random.default_rng(0).standard_normal(200).astype(np.float32)
    recovery = recover(unveil.Encodings(values, Scheme(2), 1.0), attack="exact", rng=0)
    assert recovery.explained == 88
    scores = score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (15, 0)


def test_supports_of_smooth_vectors_are_not_called_certain():
    """Random walks, which look alike: nine supports of ten were wrong, all of them "certain"."""
    rng = np.random.default_rng(0)

    def walks(count):
        x = np.cumsum(rng.standard_normal((count, 250)), axis=1)
        return (x / np.sqrt(np.mean(x**2))).astype(np.float32)

    X, P = walks(20), walks(50)
    sim = simulate(Scheme(2, 2, "equal"), private=X, public=P, m=200, rng=0)
    supports = unveil.learn_public(sim.encodings, P)
    right = (supports.indices == sim.selection.public).all(axis=1)
    assert supports.warning or right[supports.certain].all()
    assert score(recover(sim.encodings, P, rng=0), X).wrong == 0
