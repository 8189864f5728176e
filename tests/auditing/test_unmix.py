"""MixUp with weights of its own: corners of a simplex come back exactly, and no others are made
up."""

import numpy as np

from unveil.auditing.unmix import unmix
from unveil.encodings import Encodings
from unveil.scheme import Scheme


def mixed(rng, records, m, weights):
    chosen = np.array([rng.choice(len(records), 2, replace=False) for _ in range(m)])
    share = rng.beta(weights, weights, m)[:, None]
    return share * records[chosen[:, 0]] + (1 - share) * records[chosen[:, 1]]


def test_every_record_comes_back():
    rng = np.random.default_rng(0)
    records = rng.standard_normal((12, 40))
    recovery = unmix(Encodings(mixed(rng, records, 120, 1.0), Scheme(2, signs="kept"), None))
    assert len(recovery) == 12
    distance = np.abs(recovery.vectors[:, None] - records).max(axis=2)
    assert (distance.min(axis=0) < 1e-3).all()
    assert recovery.evidence["encodings_explained"] == 120
    assert recovery.members.sum(axis=1).max() <= 2


def test_full_rank_is_no_simplex():
    values = np.random.default_rng(1).standard_normal((60, 20))
    assert len(unmix(Encodings(values, Scheme(2, signs="kept"), None))) == 0
