"""The search: against brute force over all supports, where the paper's method fails, and none
certain but wrong."""

from itertools import combinations

import numpy as np
import pytest

import unveil.supports.folded.search as module
from unveil.encode import simulate
from unveil.encodings import Encodings
from unveil.scheme import Scheme
from unveil.supports.folded.confidence import is_certain
from unveil.supports.folded.likelihood import Model, log_likelihood
from unveil.supports.folded.search import LONG, block_columns, block_rows, folded_em
from unveil.supports.folded.survey import survey_public

PLENTY = 1 << 32


def instance(k, n, d, m, weighting="equal", seed=0):
    scheme = Scheme(2, k, weighting)
    sim = simulate(scheme, 50, n_public=n, m=m, d=d, rng=seed)
    public = survey_public(sim.public, block_columns(d, PLENTY))
    return (
        sim.encodings,
        public,
        Model(k, scheme.public_weight, scheme.private_variance),
        sim.selection.public,
    )


def search(encodings, public, model, limit=PLENTY, workers=1, progress=None):
    return folded_em(encodings, public, model, limit=limit, workers=workers, progress=progress)


@pytest.mark.parametrize(("k", "d"), [(2, 60), (2, 300), (3, 60), (3, 300)])
def test_the_search_finds_what_brute_force_over_all_supports_finds(k, d):
    encodings, public, model, _ = instance(k, 12, d, 60, seed=d)
    found = search(encodings, public, model)
    every = np.array(list(combinations(range(12), k)))
    Y = encodings.magnitudes()
    missed = 0
    for t in range(60):
        L = log_likelihood(
            Y, public.vectors, np.full(len(every), t), every, model.weight, model.variance
        )
        if found.indices[t].tolist() == every[L.argmax()].tolist():
            assert found.log_likelihood[t] == pytest.approx(L.max(), abs=1e-2)
            # The margin never promises more than the best rival of all leaves.
            assert found.margin[t] <= L.max() - np.sort(L)[-2] + 1e-2
        else:
            missed += 1
            assert found.margin[t] < 5
    # 60 pixels leave several supports about as likely; 300 do not.
    assert missed <= (2 if d == 60 else 0)


@pytest.mark.parametrize(
    ("k", "d", "weighting"), [(1, 800, "equal"), (2, 1000, "paper"), (4, 1200, "equal")]
)
def test_supports_are_exact_where_the_information_is_there(k, d, weighting):
    encodings, public, model, truth = instance(k, 2000, d, 60, weighting, seed=1)
    found = search(encodings, public, model)
    np.testing.assert_array_equal(found.indices, truth)
    assert is_certain(found.margin, found.fit).mean() > 0.9


def test_of_many_hard_encodings_none_is_certain_and_wrong():
    # At margin 10 a wrong support has odds of 5e-5: about 100 certain ones hide 0.005 wrong ones.
    # The cells are such that there are many of both, certain supports and wrong ones.
    wrong = certain = right = 0
    for k, d in ((2, 150), (2, 250), (3, 300)):
        encodings, public, model, truth = instance(k, 1000, d, 120, "paper", seed=d)
        found = search(encodings, public, model)
        ok = (found.indices == truth).all(axis=1)
        sure = is_certain(found.margin, found.fit)
        wrong, certain, right = wrong + (sure & ~ok).sum(), certain + sure.sum(), right + ok.sum()
    assert wrong == 0
    assert right < 340
    assert certain > 50


def test_near_twins_are_not_certain_and_wrong_because_every_member_is_left_out_in_turn(monkeypatch):
    # Every vector has a twin of correlation 0.95. The second search does not look for correlations:
    # it must fail, or the first one shows nothing.
    rng = np.random.default_rng(9)
    P = rng.standard_normal((2000, 2400)).astype(np.float32)
    P[1000:] = 0.95 * P[:1000] + np.sqrt(1 - 0.95**2) * P[1000:]
    truth = np.sort(
        [rng.choice(1000, 6, replace=False) + 1000 * rng.integers(0, 2, 6) for _ in range(150)],
        axis=1,
    )
    scheme = Scheme(2, 6, "paper")
    encodings = Encodings(
        scheme.public_weight * P[truth].sum(axis=1) + rng.standard_normal((150, 2400)), scheme
    )

    def certain_and_wrong():
        found = search(encodings, survey_public(P, 4096), Model(6, scheme.public_weight, 1.0))
        return (is_certain(found.margin, found.fit) & (found.indices != truth).any(axis=1)).sum()

    assert certain_and_wrong() == 0
    monkeypatch.setattr(module, "is_correlated", lambda *_: False)
    monkeypatch.setattr(
        module, "largest_correlation", lambda _, supports, __: np.zeros(len(supports))
    )
    assert certain_and_wrong() > 0


def test_workers_limits_and_blocks_do_not_change_the_bytes():
    encodings, public, model, _ = instance(3, 300, 300, 130, "equal", seed=2)
    here = search(encodings, public, model)
    for limit, workers, columns in (
        (PLENTY, 2, 4096),
        (PLENTY, 5, 4096),
        (400_000, 1, 77),
        (4_000_000, 2, 300),
    ):
        narrow = survey_public(public.vectors, columns)
        there = search(encodings, narrow, model, limit, workers)
        for name in ("indices", "log_likelihood", "margin", "fit"):
            assert getattr(there, name).tobytes() == getattr(here, name).tobytes(), (
                limit,
                workers,
                name,
            )


def test_blocks_follow_the_limit_and_progress_reaches_the_last_encoding():
    assert block_rows(10_000, 1000, PLENTY) == 512
    assert block_rows(100, 1000, PLENTY) == 64
    assert block_rows(1000, 1000, PLENTY, LONG) == 125
    assert block_rows(1000, 1000, PLENTY, LONG + 1) == 250
    assert block_rows(100, 1000, 1) == block_columns(1000, 1) == 1
    encodings, public, model, _ = instance(2, 50, 300, 150)
    seen = []
    search(encodings, public, model, workers=2, progress=lambda *step: seen.append(step))
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert len(seen) == 3
    assert seen[-1] == ("learn public", 150, 150)
