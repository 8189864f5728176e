"""Which variance and which model a search starts from; `test_learn_public` has what comes of it."""

from dataclasses import replace

import numpy as np
import pytest

from unveil import Scheme, simulate
from unveil.records import Supports
from unveil.supports.folded.survey import survey_public
from unveil.supports.folded_job import FoldedJob, in_doubt
from unveil.supports.weights.stepwise import Estimate

SIM = simulate(Scheme(2, 2), n_private=20, n_public=40, m=60, d=300, rng=0)


def job(encodings=SIM.encodings):
    return FoldedJob(encodings, survey_public(SIM.public, 64), 2, 1 << 30, 1, None)


def test_the_schemes_variance_stands_while_the_encodings_agree():
    scheme = SIM.encodings.scheme
    assert job()._private_variance(scheme) == pytest.approx(scheme.private_variance)


def test_noise_and_unknown_scale_are_taken_from_the_encodings():
    scheme = SIM.encodings.scheme
    values = np.abs(SIM.encodings.values + np.random.default_rng(0).standard_normal((60, 300)))
    noisy = job(replace(SIM.encodings, values=values.astype(np.float32)))
    assert noisy._private_variance(scheme) > 1.5 * scheme.private_variance
    unknown = job(replace(SIM.encodings, pixel_rms=None))
    assert unknown._private_variance(scheme) == pytest.approx(scheme.private_variance, rel=0.2)


def test_an_estimate_counts_where_the_scheme_is_off():
    weight = SIM.encodings.scheme.public_weight
    near, far = Estimate(2, 1.01 * weight, 0.5), Estimate(2, 1.5 * weight, 0.5)
    assert job()._model(2, near).weight == pytest.approx(weight)
    assert job()._model(2, far).weight == pytest.approx(1.5 * weight)


def test_in_doubt_nothing_is_certain():
    sure = Supports(np.zeros((3, 2), np.int64), np.ones(3), "folded-em", np.ones(3, bool))
    found = in_doubt(sure, "pixels are correlated")
    assert not found.certain.any()
    assert found.confidence.max() == 0.5
    assert "pixels are correlated" in found.warning
