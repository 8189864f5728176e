"""Mixtures: what comes back under every scheme of the family, through the public function."""

import warnings

import numpy as np
import pytest
from scipy.optimize import nnls

import unveil
from unveil import InputError, Scheme
from unveil.mixing import recover_mixture
from unveil.mixing.codes import alternate, sparse_codes
from unveil.mixing.corners import find_corners, skewest_columns
from unveil.mixing.dictionary import reproduced, sketch_dictionary
from unveil.mixing.hidden import solve_magnitudes
from unveil.mixing.masks import mask_groups, relative_masks
from unveil.mixing.model import simplex_weights, weight_matrix


def mixtures(k, n, m, d, alpha, seed, noise=0.0):
    """Records, weights and encodings, drawn here and not by the library; alpha None: equal."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    W = np.zeros((m, n))
    chosen = np.array([rng.choice(n, k, replace=False) for _ in range(m)])
    weights = np.full((m, k), 1 / k) if alpha is None else rng.dirichlet(np.full(k, alpha), m)
    np.put_along_axis(W, chosen, weights, axis=1)
    return x, W, W @ x + noise * rng.standard_normal((m, d))


def distances(found, truth):
    """(n,) largest error of every true record to the nearest that was found."""
    return np.array([np.abs(found - x).max(axis=1).min() for x in truth])


SCHEMES = {
    "MixUp, equal": (Scheme(2, signs="kept"), 30, 180, 100, 0),
    "MixUp, three equal": (Scheme(3, signs="kept"), 30, 120, 100, 0),
    "MixUp, equal, more records than values": (Scheme(2, signs="kept"), 30, 210, 20, 0),
    "MixUp, own weights": (Scheme(2, weighting="dirichlet", signs="kept"), 30, 150, 100, 0),
    "MixUp, α = 0.2": (Scheme(2, weighting="dirichlet", alpha=0.2, signs="kept"), 30, 300, 100, 0),
    "MixUp, three": (Scheme(3, weighting="dirichlet", signs="kept"), 30, 200, 100, 0),
    "equal with public ones": (Scheme(2, 2, signs="kept"), 20, 150, 200, 40),
    "own weights with public ones": (Scheme(2, 1, "uniform", signs="kept"), 15, 400, 80, 20),
    "hidden signs": (Scheme(2, weighting="half-normal"), 20, 300, 200, 0),
    "hidden signs, three": (Scheme(3, weighting="half-normal"), 20, 300, 200, 0),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_every_record_is_verified(name):
    scheme, n, m, d, n_public = SCHEMES[name]
    sim = unveil.simulate(scheme, n_private=n, n_public=n_public, m=m, d=d, rng=7)
    recovery = recover_mixture(sim.encodings, sim.public, rng=0)
    scores = unveil.score(recovery, sim.private)
    assert (scores.exact, scores.wrong) == (n, 0), recovery.explanation
    assert recovery.attack == "mixing"
    if recovery.weights is not None and scheme.k_public == 0:
        # Re-encoding with the weights that came back gives the encodings.
        again = recovery.weights @ recovery.vectors.astype(np.float64)
        off = np.abs(np.abs(again) - np.abs(sim.encodings.values)).max(axis=1)
        assert (off < 5e-3).sum() >= recovery.explained


def test_texthide_with_a_small_pool():
    rng = np.random.default_rng(0)
    common = 2 * rng.standard_normal(60)
    x = (rng.standard_normal((30, 60)) + common).astype(np.float32)
    scheme = Scheme(3, weighting="half-normal", signs="masked", masks=4)
    sim = unveil.simulate(scheme, private=x, m=700, rng=1)
    recovery = recover_mixture(sim.encodings, rng=0)
    scores = unveil.score(recovery, sim.private)
    assert recovery.evidence["masks"] == 4
    assert scores.exact >= 29
    assert scores.wrong == 0
    assert not recovery.signed


def test_texthide_with_public_vectors_has_signs():
    rng = np.random.default_rng(2)
    common = 2 * rng.standard_normal(50)
    x, p = ((rng.standard_normal((n, 50)) + common).astype(np.float32) for n in (30, 40))
    scheme = Scheme(2, 2, "half-normal", signs="masked", masks=4)
    sim = unveil.simulate(scheme, private=x, public=p, m=1000, rng=1)
    recovery = recover_mixture(sim.encodings, p, rng=0)
    assert recovery.signed
    # More records than values: they come back, and nothing is proved.
    assert not recovery.verified.any()
    assert (distances(recovery.vectors, x) < 0.01).sum() >= 28


@pytest.mark.parametrize("alpha", [None, 1.0])
def test_noise_leaves_the_error_of_least_squares_with_all_known(alpha):
    x, W, Y = mixtures(2, 40, 400, 200, alpha, 3, noise=0.05)
    scheme = Scheme(2, weighting="convex" if alpha is None else "dirichlet", signs="kept")
    recovery = recover_mixture(unveil.Encodings(Y, scheme), rng=0)
    ideal = np.linalg.lstsq(W, Y, rcond=None)[0]
    floor = np.sqrt(np.mean((ideal - x) ** 2))
    error = np.sqrt(np.mean([np.square(recovery.vectors - v).mean(axis=1).min() for v in x]))
    assert not recovery.verified.any()
    assert error < 1.1 * floor
    assert recovery.evidence["noise"] == pytest.approx(0.05, rel=0.2)


def test_more_records_than_values():
    x, _, Y = mixtures(2, 60, 600, 20, 1.0, 5)
    found = reproduced(Y, sketch_dictionary(Y, 2, 2 / 3))
    assert found is not None
    assert (distances(found.values, x) < 1e-2).sum() >= 57


def test_records_come_back_where_fewer_than_half_of_the_encodings_are_explained():
    from sklearn.datasets import load_breast_cancer

    x = load_breast_cancer().data
    x = x[np.random.default_rng(0).permutation(len(x))[:60]].astype(np.float32)
    scheme = Scheme(3, weighting="dirichlet", alpha=0.2, signs="kept")
    sim = unveil.simulate(scheme, private=x, m=240, rng=1)
    recovery = recover_mixture(sim.encodings, rng=0)
    near = [np.abs((recovery.vectors - one) / x.std(axis=0)).max(axis=1).min() for one in x]
    assert recovery.explained < 120
    assert (np.array(near) < 1e-2).sum() >= 30
    assert not recovery.verified.any()


def test_noise_is_not_a_mixture():
    Y = np.random.default_rng(0).standard_normal((200, 30)).astype(np.float32)
    for scheme in (
        Scheme(2, weighting="unknown", signs="kept"),
        Scheme(2, signs="kept"),
        Scheme(2, weighting="half-normal"),
        Scheme(2, weighting="half-normal", signs="masked"),
    ):
        recovery = recover_mixture(unveil.Encodings(Y, scheme, None), rng=0)
        assert not recovery.verified.any()
        assert not recovery.exact


def test_columns_of_a_table_in_units_of_their_own():
    from sklearn.datasets import load_breast_cancer

    x = load_breast_cancer().data[:25].astype(np.float32)
    scheme = Scheme(2, weighting="dirichlet", signs="kept")
    sim = unveil.simulate(scheme, private=x, m=200, rng=0)
    recovery = recover_mixture(sim.encodings, rng=0)
    spread = x.std(axis=0)
    off = [np.abs((recovery.vectors - one) / spread).max(axis=1).min() for one in x]
    assert (np.array(off) < 1e-2).all()


def test_rows_that_are_no_mixture_spoil_nothing():
    x, _, Y = mixtures(2, 20, 200, 80, 1.0, 1)
    Y[:3] = np.random.default_rng(1).standard_normal((3, 80))
    scheme = Scheme(2, weighting="unknown", signs="kept")
    recovery = recover_mixture(unveil.Encodings(Y, scheme, None), rng=0)
    assert (distances(recovery.vectors, x) < 1e-3).all()
    verified = recovery.vectors[recovery.verified]
    assert all(np.abs(x - v).max(axis=1).min() < 1e-3 for v in verified)


def test_the_same_seed_gives_the_same_bytes():
    sim = unveil.simulate(Scheme(2, weighting="half-normal"), n_private=15, m=200, d=150, rng=0)
    first, second = (recover_mixture(sim.encodings, rng=3).vectors for _ in range(2))
    assert first.tobytes() == second.tobytes()


def test_a_scheme_of_another_kind_is_refused():
    sim = unveil.simulate(Scheme(2), n_private=8, m=20, d=20, rng=0)
    assert not sim.encodings.scheme.is_mixture
    with pytest.raises(InputError, match="attack=None"):
        recover_mixture(sim.encodings)


@pytest.mark.parametrize("name", ["mixing", "mixup", "unmix", "unmask"])
def test_the_older_names_still_call_it(name):
    sim = unveil.simulate(Scheme(2, signs="kept"), n_private=10, m=60, d=40, rng=0)
    assert unveil.recover(sim.encodings, attack=name, rng=0).attack == "mixing"


# --- The pieces -----------------------------------------------------------------------------------


def test_the_skewest_columns_are_those_of_the_weights():
    for alpha in (None, 1.0):
        _, W, Y = mixtures(3, 30, 300, 60, alpha, 2)
        U = np.linalg.svd(Y, full_matrices=False)[0][:, :30]
        columns = U @ skewest_columns(U)
        alike = np.abs(np.corrcoef(columns.T, W.T)[:30, 30:]).max(axis=1)
        assert (alike > 0.95).mean() > 0.9


def test_weights_agree_with_nnls_where_that_sums_to_one():
    x, W, Y = mixtures(3, 8, 40, 12, 1.0, 4)
    members, weights = sparse_codes(Y, x, 3)
    assert np.allclose(weight_matrix(members, weights, 8).toarray(), W, atol=1e-8)
    for y, w in zip(Y[:5], W[:5], strict=True):
        assert np.allclose(nnls(x.T, y)[0], w, atol=1e-8)


def test_weights_are_a_point_of_the_simplex():
    rng = np.random.default_rng(0)
    weights = simplex_weights(
        rng.standard_normal((50, 6)), rng.standard_normal((9, 6)), rng.integers(0, 9, (50, 3))
    )
    assert (weights >= 0).all()
    assert np.allclose(weights.sum(axis=1), 1)


def test_the_number_of_records_is_the_rank():
    x, _, Y = mixtures(2, 13, 90, 40, 1.0, 6)
    found = find_corners(Y, 2)
    assert found is not None
    assert len(found.values) == 13
    assert found.exact
    assert distances(found.values, x).max() < 1e-6


def test_reflections_solve_magnitudes_up_to_one_sign_per_value():
    x, W, Y = mixtures(2, 12, 120, 30, 1.0, 8)
    found = solve_magnitudes(np.abs(Y), weight_matrix(*_dense(W, 2), 12), np.random.default_rng(0))
    same = np.minimum(np.abs(found - x).max(axis=0), np.abs(found + x).max(axis=0))
    assert (same < 1e-4).mean() > 0.9


def _dense(W, k):
    members = np.argsort(-W, axis=1)[:, :k]
    return members, np.take_along_axis(W, members, 1)


def test_masks_come_back_up_to_one_sign_per_value():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((400, 80)) + 2 * rng.standard_normal(80)
    true = rng.choice([-1, 1], (5, 80))
    which = rng.integers(0, 5, 400)
    values = (z * true[which]).astype(np.float32)
    groups = mask_groups(values)
    assert (groups >= 0).all()
    assert all(len(np.unique(which[groups == g])) == 1 for g in range(5))
    masks = relative_masks(values, groups)
    names = [which[groups == g][0] for g in range(5)]
    relative = masks * true[names]
    assert (np.abs(relative.sum(axis=0)) == 5).mean() > 0.9


def test_without_a_record_to_begin_with_there_is_no_fit():
    rows = np.random.default_rng(0).standard_normal((30, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert alternate(rows, rows[:0], 2, known=rows[:3]) is None
