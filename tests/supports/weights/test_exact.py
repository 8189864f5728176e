"""No private part: w comes back to rounding, up to one sign per encoding, and what is solved is
right."""

import numpy as np
import pytest

from unveil.records import Encodings, Scheme
from unveil.supports.folded.survey import survey_public
from unveil.supports.weights.exact import TOLERANCE, retrieve


def instance(k, d, signed, n=1000, m=40):
    rng = np.random.default_rng(k)
    P = rng.standard_normal((n, d)).astype(np.float32)
    truth = np.sort([rng.choice(n, k, replace=False) for _ in range(m)], axis=1)
    w = rng.standard_normal((m, k))
    w = w if signed else np.abs(w)
    return (
        Encodings(np.einsum("mk,mkd->md", w, P[truth].astype(np.float64)), Scheme(0, k)),
        P,
        truth,
        w,
    )


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize(("k", "d"), [(1, 100), (2, 150), (4, 300)])
def test_support_and_weights_are_exact(k, d, signed):
    encodings, P, truth, w = instance(k, d, signed)
    found = retrieve(
        encodings, survey_public(P, 4096), k_public=k, signed=signed, limit=1 << 32, workers=1
    )
    solved = found.residual < TOLERANCE
    assert solved.mean() >= 0.9
    for i in np.flatnonzero(solved):
        used = found.indices[i] >= 0
        assert found.indices[i, used].tolist() == truth[i].tolist()
        error = min(np.abs(found.weights[i, used] - s * w[i]).max() for s in (1, -1))
        assert error < 1e-5


def test_noise_is_seen_in_the_residual():
    encodings, P, _, _ = instance(2, 300, False)
    noisy = Encodings(
        encodings.values + 0.1 * np.random.default_rng(0).standard_normal(encodings.values.shape),
        Scheme(0, 2),
    )
    found = retrieve(noisy, survey_public(P, 4096), k_public=2, limit=1 << 32, workers=1)
    assert (found.residual > TOLERANCE).all()
