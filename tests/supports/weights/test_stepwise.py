"""Unknown weights and unknown k: what can be told is found, the rest is not made up."""

import numpy as np
import pytest

from unveil.encode import simulate
from unveil.records import Encodings, Scheme
from unveil.supports.folded.survey import survey_public
from unveil.supports.weights.stepwise import estimate_scheme, learn_weights

PLENTY = {"limit": 1 << 32, "workers": 1}


def unequal(k=3, n=500, d=2000, m=40, seed=0):
    """Weights between 0.5 and 1, far above what 2000 pixels can tell from nothing."""
    rng = np.random.default_rng(seed)
    P = rng.standard_normal((n, d)).astype(np.float32)
    truth = np.sort([rng.choice(n, k, replace=False) for _ in range(m)], axis=1)
    weights = rng.uniform(0.5, 1.0, (m, k))
    Y = np.einsum("mk,mkd->md", weights, P[truth]) + 0.8 * rng.standard_normal((m, d))
    return Encodings(Y, Scheme(2, k)), survey_public(P, 4096), truth, weights


@pytest.mark.parametrize("k_public", [3, None])
def test_supports_weights_and_variance_are_found_together(k_public):
    encodings, public, truth, weights = unequal()
    found = learn_weights(encodings, public, k_public=k_public, **PLENTY)
    same = [
        set(a[a >= 0].tolist()) == set(b)
        for a, b in zip(found.indices, truth.tolist(), strict=True)
    ]
    assert np.mean(same) >= 0.95
    # Standard error of a weight 0.8/√2000 = 0.02 and a little more for lost signs; 120 of them
    # within six.
    np.testing.assert_allclose(found.weights[same][:, :3], weights[same], atol=0.15)
    np.testing.assert_allclose(np.median(found.variance), 0.64, atol=0.05)
    assert (found.weights[found.indices < 0] == 0).all()


def test_nothing_is_found_where_there_is_nothing():
    rng = np.random.default_rng(0)
    encodings = Encodings(rng.standard_normal((40, 800)), Scheme(2, 2))
    public = survey_public(rng.standard_normal((500, 800)).astype(np.float32), 4096)
    found = learn_weights(encodings, public, k_public=None, **PLENTY)
    # Some vector among 500 gains more than log 500 + 1.5 by chance in about 1 of 40 encodings.
    assert ((found.indices >= 0).sum(axis=1) > 0).sum() <= 6
    assert estimate_scheme(encodings, public, **PLENTY).k == 0


@pytest.mark.parametrize(("k", "weighting"), [(1, "equal"), (2, "paper"), (4, "equal")])
def test_the_scheme_is_estimated_from_a_sample(k, weighting):
    scheme = Scheme(2, k, weighting)
    sim = simulate(scheme, 50, n_public=400, m=40, d=1500, rng=k)
    estimate = estimate_scheme(sim.encodings, survey_public(sim.public, 4096), **PLENTY)
    assert estimate.k == k
    assert estimate.weight == pytest.approx(scheme.public_weight, rel=0.05)
    assert estimate.variance == pytest.approx(scheme.private_variance, rel=0.1)


def test_blocks_and_workers_do_not_change_the_bytes():
    encodings, public, _, _ = unequal(d=400)
    here = learn_weights(encodings, public, k_public=None, **PLENTY)
    there = learn_weights(
        encodings, survey_public(public.vectors, 100), k_public=None, limit=200_000, workers=2
    )
    assert there.indices.tobytes() == here.indices.tobytes()
    np.testing.assert_allclose(there.weights, here.weights, atol=1e-4)


def test_signed_weights_are_found_with_their_signs():
    _, public, truth, weights = unequal()
    flip = np.random.default_rng(1).choice([-1, 1], weights.shape)
    Y = np.einsum("mk,mkd->md", flip * weights, public.vectors[truth])
    Y += 0.5 * np.random.default_rng(2).standard_normal(Y.shape)
    found = learn_weights(Encodings(Y, Scheme(2, 3)), public, k_public=3, signed=True, **PLENTY)
    same = (found.indices == truth).all(axis=1)
    assert same.mean() >= 0.95
    one_sign = np.sign(found.weights[same][:, :1] * (flip * weights)[same][:, :1])
    np.testing.assert_allclose(one_sign * found.weights[same], (flip * weights)[same], atol=0.15)
