"""Confidence: plain twins, the law of the fit under the truth, the rule."""

from itertools import combinations
from math import comb, log

import numpy as np
import pytest

from unveil.encode import simulate
from unveil.records import Scheme
from unveil.supports.folded.confidence import confidence, evidence_margin, fit_of, is_certain
from unveil.supports.folded.likelihood import Model, log_likelihood
from unveil.supports.folded.survey import survey_public


def instance(k, n, d, m, weighting="equal", seed=0):
    scheme = Scheme(2, k, weighting)
    sim = simulate(scheme, 10, n_public=n, m=m, d=d, rng=seed)
    public = survey_public(sim.public, 64)
    model = Model(k, scheme.public_weight, scheme.private_variance)
    Y, S, rows = np.abs(sim.encodings.values), sim.selection.public, np.arange(m)
    return (
        Y,
        public,
        rows,
        S,
        log_likelihood(Y, public.vectors, rows, S, model.weight, model.variance),
        model,
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_evidence_margin_equals_the_formula(k):
    Y, public, rows, S, L, model = instance(k, 15, 200, 6)
    margin = evidence_margin(Y, public, rows, S, L, model)
    for t in rows:
        values = []
        for size in {0, 1, k - 1} - {k}:
            for A in combinations(S[t].tolist(), size):
                mean = np.array([A], np.int64).reshape(1, size)
                wide = log_likelihood(
                    Y,
                    public.vectors,
                    rows[t : t + 1],
                    mean,
                    model.weight,
                    model.variance + (k - size) * model.spread,
                )
                values.append(wide[0] + log(comb(15 - k, k - size)))
        assert margin[t] == pytest.approx(L[t] - max(values), abs=1e-2)


def test_with_no_other_support_there_is_no_evidence_against():
    Y, public, rows, S, L, model = instance(3, 3, 100, 4)
    assert (evidence_margin(Y, public, rows, S, L, model) == np.inf).all()


@pytest.mark.parametrize(("k", "weighting"), [(2, "equal"), (2, "paper"), (6, "paper")])
def test_the_fit_is_standard_normal_under_the_truth(k, weighting):
    Y, public, rows, S, L, model = instance(k, 200, 500, 300, weighting)
    z = fit_of(Y, public, rows, S, L, model)
    # 300 numbers that are not quite independent, since encodings share vectors: mean within 6,
    # spread within 5 standard errors.
    assert abs(z.mean()) < 6 / np.sqrt(300)
    assert abs(z.std() - 1) < 5 / np.sqrt(600)
    assert z.min() > -5


def test_a_wrong_support_does_not_fit():
    Y, public, rows, S, _, model = instance(3, 200, 2000, 50, "equal")
    wrong = (S + 1) % 200
    L = log_likelihood(Y, public.vectors, rows, wrong, model.weight, model.variance)
    assert (fit_of(Y, public, rows, wrong, L, model) < -10).all()


def test_certain_needs_margin_and_fit():
    margin, fit = np.array([10.0, 9.9, 50, 50, np.inf]), np.array([0.0, 3, -4.1, -3.9, 0])
    assert is_certain(margin, fit).tolist() == [True, False, False, True, True]


def test_confidence_is_a_probability_that_a_bad_fit_caps():
    margin = np.array([-np.inf, -2, 0, 10, np.inf])
    p = confidence(margin)
    np.testing.assert_allclose(p, [0, 1 / (1 + np.e**2), 0.5, 1 / (1 + np.e**-10), 1], atol=1e-300)
    np.testing.assert_array_equal(confidence(margin, np.full(5, -4.0)), p)
    assert (confidence(margin, np.full(5, -6.0)) < 1e-4).all()
    assert (confidence(margin, np.full(5, -80.0)) == 0).all()
