"""A table under noise of 5%: all records by likely signs, and nothing from what nobody mixed."""

import numpy as np

import unveil
from unveil import Encodings, Scheme, recover
from unveil.attacks.by_likely_signs import _overlaps, by_likely_signs
from unveil.parallel import Stopwatch
from unveil.relations.copies import distances, noise_of_copies


def correlated(n, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 4)) @ rng.standard_normal((4, d)) + 0.3 * rng.standard_normal(
        (n, d)
    )
    return (x / x.std(axis=0)).astype(np.float32)


def found(y):
    apart = distances(y)
    seed = np.random.SeedSequence(0)
    return by_likely_signs(y, apart, noise_of_copies(apart), seed, Stopwatch(), None)


def test_every_record_of_a_noisy_table_comes_back_and_none_is_verified():
    x = correlated(40, 24, 0)
    sim = unveil.simulate(Scheme(2), private=x, m=400, rng=0)
    y = np.abs(sim.encodings.values + 0.05 * np.random.default_rng(1).standard_normal((400, 24)))
    recovery = recover(
        Encodings(y.astype(np.float32), Scheme(2), pixel_rms=None), attack="noisy-relations", rng=0
    )
    assert not recovery.verified.any()
    error = [np.sqrt(np.mean((np.abs(recovery.vectors) - np.abs(v)) ** 2, axis=1)).min() for v in x]
    assert len(recovery) == 40
    assert max(error) < 0.05
    assert recovery.evidence["encodings_explained"] >= 396


def test_correlated_noise_that_nobody_mixed_gives_nothing():
    y = np.abs(correlated(400, 24, 2))
    assert found(y) is None
    recovery = recover(Encodings(y, Scheme(2), pixel_rms=None), attack="noisy-relations", rng=0)
    assert len(recovery) == 0


def test_independent_columns_and_few_columns_are_left_alone():
    rng = np.random.default_rng(3)
    assert found(np.abs(rng.standard_normal((300, 24))).astype(np.float32)) is None
    assert found(np.abs(correlated(300, 4, 4))) is None


def test_four_columns_yield_nothing():
    """Under noise of 5% four columns fit by chance, however alike they are."""
    x = correlated(40, 4, 5)
    sim = unveil.simulate(Scheme(2), private=x, m=400, rng=0)
    y = np.abs(sim.encodings.values + 0.05 * np.random.default_rng(6).standard_normal((400, 4)))
    recovery = recover(
        Encodings(y.astype(np.float32), Scheme(2), pixel_rms=None), attack="noisy-relations", rng=0
    )
    assert len(recovery) == 0


def test_a_relation_votes_for_the_four_pairs_of_its_circle():
    nats = np.full((5, 5), -9.0)
    nats[1, 2] = nats[2, 1] = nats[0, 3] = nats[3, 0] = 2.0
    S = _overlaps(nats, np.array([[0, 1, 2, 3]]))
    circle = {(0, 1), (2, 3), (0, 3), (1, 2)}
    for i in range(5):
        for j in range(i):
            assert (S[i, j] >= 0.5) == ((j, i) in circle)
