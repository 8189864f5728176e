"""`problem:main`, `defn:multitask`: the same call on plain arrays is multi-task phase retrieval
with missing data."""

import numpy as np

import unveil


def test_plain_arrays_of_pairs_and_responses():
    """Samples p_j ~ N(0, I_n) with only the coordinates S observed; tasks |⟨w_i, p_j⟩| = y_ij; some
    x_s, s ∉ S, comes back."""
    rng = np.random.default_rng(0)
    n, observed, tasks, samples, k = 60, 40, 150, 12288, 2
    p = rng.standard_normal((samples, n))
    w = np.zeros((tasks, n))
    for row in w:
        row[rng.choice(observed, k, replace=False)] = 0.5
        row[observed + rng.choice(n - observed, k, replace=False)] = 0.5
    y = np.abs(p @ w.T)

    encodings = unveil.Encodings(y.T, unveil.Scheme(k_private=k, k_public=k))
    recovery = unveil.learn_private_image(encodings, p[:, :observed].T)

    assert recovery.verified.all()
    assert len(recovery) == k + 2
    for x in recovery.vectors:
        assert np.abs(p[:, observed:].T - x).max(axis=1).min() < 1e-4
