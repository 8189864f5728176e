"""GramExtract: the kernel against a plain twin, blocks that do not matter, exact overlaps, honest error counts."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, Supports, gram_extract, simulate
from unveil.encode import selection_matrix
from unveil.gram.gram_extract import ROUNDINGS, lattice, overlap_thresholds, standardise
from unveil.gram.psi import psi, psi_inverse, psi_noise
from unveil.records import WEIGHTINGS, InputError

EVERY_K = [(k, k_public) for k in range(1, 7) for k_public in (0, 2)]


def true_overlaps(chosen):
    return np.array([[len(set(a) & set(b)) for b in chosen.tolist()] for a in chosen.tolist()])


def known_supports(sim):
    return Supports(sim.selection.public, np.ones(len(sim.selection.public)), "known") if sim.public is not None else None


def instance(k_private, k_public, weighting="equal", *, n=12, m=40, d=300, rng=0):
    return simulate(Scheme(k_private, k_public, weighting), n, n_public=6 if k_public else 0, m=m, d=d, rng=rng)


def covariance(y):
    """Folded covariance over E[y²], in float64."""
    y = np.abs(y.astype(np.float64))
    centred = y - y.mean(axis=1, keepdims=True)
    rms = np.sqrt((y**2).mean(axis=1))
    return centred @ centred.T / y.shape[1] / np.outer(rms, rms)


def plain_threshold(scheme, p, q, rounding):
    """The covariance between q − 1 and q shared private vectors when p public ones are shared, with the lattice written out."""
    a2, b2 = scheme.private_weight**2, scheme.public_weight**2
    total = scheme.k_private * a2 + scheme.k_public * b2
    low, high = (min(1.0, (p * b2 + x * a2) / total) for x in (q - 1, q))
    if rounding == "paper":
        return float(psi((low + high) / 2))
    # As many standard deviations above Ψ(low) as below Ψ(high).
    sigmas = (psi(high) - psi(low)) / (psi_noise(low) + psi_noise(high))
    return float(psi(low) + sigmas * psi_noise(low))


def plain(sim, rounding):
    """Entry by entry; and how far each entry is from the nearest threshold."""
    scheme, C, shared = sim.encodings.scheme, covariance(sim.encodings.values), true_overlaps(sim.selection.public)
    levels = [
        [plain_threshold(scheme, p, q, rounding) for q in range(1, scheme.k_private + 1)] for p in range(scheme.k_public + 1)
    ]
    M, distance = np.zeros(C.shape, int), np.full(C.shape, np.inf)
    for i in range(len(C)):
        for j in range(len(C)):
            if i == j:
                M[i, j] = scheme.k_private
                continue
            for t in levels[shared[i, j]]:
                M[i, j] += C[i, j] >= t
                distance[i, j] = min(distance[i, j], abs(C[i, j] - t))
    return M, distance


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(("k_private", "k_public"), EVERY_K)
def test_overlaps_equal_the_plain_twin(k_private, k_public, weighting, rounding):
    sim = instance(k_private, k_public, weighting)
    expected, distance = plain(sim, rounding)
    found = gram_extract(sim.encodings, sim.public, supports=known_supports(sim), rounding=rounding)
    assert found.k_private == k_private
    # float32 may round the other way within 1e-6 of a threshold.
    clear = distance > 1e-6
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(found.toarray()[clear], expected[clear])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("k_public", [0, 2])
def test_the_papers_rounding_is_the_nearest_lattice_point_of_the_inverse(k_public, weighting):
    sim = instance(3, k_public, weighting)
    z = psi_inverse(covariance(sim.encodings.values))
    levels = lattice(sim.encodings.scheme)[true_overlaps(sim.selection.public)]
    expected = np.abs(z[:, :, None] - levels).argmin(axis=2)
    found = gram_extract(sim.encodings, sim.public, supports=known_supports(sim), rounding="paper").toarray()
    assert (found != expected).mean() < 0.002


# Bytes: 1 forces one row per block, 100,000 a handful, 1 GB all 40 rows at once.
@pytest.mark.parametrize("k_public", [0, 2])
def test_blocks_do_not_matter(k_public):
    sim = instance(2, k_public, d=600)
    whole = gram_extract(sim.encodings, sim.public, supports=known_supports(sim), memory_limit=1 << 30)
    for limit in (1, 100_000, 300_000, 1_500_000):
        steps = []
        parts = gram_extract(
            sim.encodings,
            sim.public,
            supports=known_supports(sim),
            memory_limit=limit,
            progress=lambda *s, steps=steps: steps.append(s),
        )
        np.testing.assert_array_equal(parts.toarray(), whole.toarray())
        assert len(steps) > 1
        assert steps[-1] == ("overlaps", len(steps), len(steps))


@pytest.mark.parametrize(
    ("k_private", "k_public", "weighting", "d"),
    [(1, 0, "equal", 600), (2, 0, "equal", 4000), (3, 0, "convex", 16_000), (2, 2, "equal", 30_000), (2, 1, "paper", 30_000)],
)
def test_overlaps_are_exact_at_generous_d(k_private, k_public, weighting, d):
    # The smallest step of the lattice, 1/4, is 9.4 standard deviations wide: one wrong pair in 1,770 with probability 0.004.
    sim = instance(k_private, k_public, weighting, n=15, m=60, d=d, rng=1)
    overlaps = gram_extract(sim.encodings, sim.public, supports=known_supports(sim))
    np.testing.assert_array_equal(overlaps.toarray(), true_overlaps(sim.selection.private))
    assert overlaps.expected_errors < 0.05


def test_public_supports_are_learnt_when_not_given():
    sim = instance(2, 2, n=15, m=30, d=30_000, rng=2)
    np.testing.assert_array_equal(gram_extract(sim.encodings, sim.public).toarray(), true_overlaps(sim.selection.private))


def test_the_result_is_a_sorted_symmetric_matrix_with_k_on_the_diagonal():
    matrix = gram_extract(instance(3, 0).encodings).tocsr()
    assert matrix.has_sorted_indices
    assert abs(matrix - matrix.T).sum() == 0
    assert (matrix.diagonal() == 3).all()
    assert matrix.data.min() >= 1
    assert matrix.data.max() <= 3


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize(("k_private", "k_public"), EVERY_K)
def test_thresholds_rise_with_every_shared_vector_and_lie_between_neighbours(k_private, k_public, weighting):
    scheme = Scheme(k_private, k_public, weighting)
    z = lattice(scheme)
    assert z.shape == (k_public + 1, k_private + 1)
    assert z[0, 0] == 0
    assert z[-1, -1] == pytest.approx(1)
    for rounding in ROUNDINGS:
        t = overlap_thresholds(scheme, 1000, rounding)
        assert t.shape == (k_public + 1, k_private)
        assert (np.diff(t, axis=1) > 0).all()
        assert (np.diff(t, axis=0) > 0).all()
        assert (psi(z[:, :-1]) < t).all()
        assert (t < psi(z[:, 1:])).all()


def test_expected_errors_are_the_errors_that_happen():
    # k=2 at 600 pixels: dozens of wrong pairs per instance, 24 instances. Pairs share encodings, so the standard error
    # comes from the instances. Beyond five of them (t, 23 degrees of freedom: 5e-5) or 15 % of model error, the count lies.
    expected, happened = [], []
    for seed in range(24):
        sim = simulate(Scheme(2), 20, m=120, d=600, rng=seed)
        overlaps = gram_extract(sim.encodings)
        expected.append(overlaps.expected_errors)
        happened.append(np.triu(overlaps.toarray() != true_overlaps(sim.selection.private), 1).sum())
    difference = np.subtract(happened, expected)
    assert np.mean(happened) > 20
    assert abs(difference.mean()) < 5 * difference.std(ddof=1) / np.sqrt(24) + 0.15 * np.mean(expected)
    assert 5 * difference.std(ddof=1) / np.sqrt(24) < 0.5 * np.mean(happened)


def test_balanced_thresholds_make_fewer_errors_than_the_papers():
    sim = simulate(Scheme(2), 20, m=120, d=600, rng=0)
    truth = true_overlaps(sim.selection.private)
    balanced, paper = ((gram_extract(sim.encodings, rounding=r).toarray() != truth).sum() for r in ROUNDINGS)
    assert balanced < paper / 3


def test_signs_and_scale_of_the_encodings_do_not_matter():
    sim = instance(2, 0, d=800)
    y, scheme = sim.encodings.values, sim.encodings.scheme
    expected = gram_extract(sim.encodings).toarray()
    coins = np.random.default_rng(0).choice([-1, 1], size=y.shape)
    np.testing.assert_array_equal(gram_extract(Encodings(coins * y, scheme)).toarray(), expected)
    np.testing.assert_array_equal(gram_extract(Encodings(1024 * y, scheme)).toarray(), expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("k_public", [0, 2])
def test_constant_rows_and_zeros_share_nothing_and_do_not_crash(k_public):
    sim = instance(2, k_public)
    y = sim.encodings.values.copy()
    y[0], y[1], y[2], y[3] = 0, 0, 1.7, 1.7
    overlaps = gram_extract(Encodings(y, sim.encodings.scheme), sim.public, supports=known_supports(sim)).toarray()
    np.testing.assert_array_equal(overlaps[:4, 4:], 0)
    np.testing.assert_array_equal(overlaps[:4, :4], 2 * np.eye(4))
    others = gram_extract(sim.encodings, sim.public, supports=known_supports(sim)).toarray()
    np.testing.assert_array_equal(overlaps[4:, 4:], others[4:, 4:])


def test_standardised_rows_have_the_folded_covariance_as_products():
    y = np.abs(np.random.default_rng(0).standard_normal((5, 4000))).astype(np.float32)
    Z = standardise(y)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z @ Z.T, covariance(y), atol=1e-6)


def test_a_single_encoding_overlaps_with_itself_only():
    assert gram_extract(Encodings(np.ones((1, 9)), Scheme(3))).toarray().tolist() == [[3]]


def test_the_truth_is_the_product_of_selection_matrices():
    chosen = instance(3, 0).selection.private
    W = selection_matrix(chosen, 12)
    np.testing.assert_array_equal((W @ W.T).toarray(), true_overlaps(chosen))


@pytest.mark.parametrize(
    ("scheme", "arguments", "complaint"),
    [
        (Scheme(0, 2), {"public": np.ones((4, 9))}, "k_private=0"),
        (Scheme(2, 0), {"rounding": "up"}, "rounding='up': choose one of balanced, paper"),
        (Scheme(2, 2), {}, "no public vectors"),
        (Scheme(2, 2), {"public": np.ones((4, 8))}, "8 pixels, encodings 9"),
        (Scheme(2, 2), {"supports": Supports(np.zeros((5, 1), int), np.ones(5), "x")}, r"supports of shape \(5, 1\)"),
        (Scheme(2, 2), {"supports": Supports(np.zeros((4, 2), int), np.ones(4), "x")}, "for 5 encodings with k_public=2"),
        (Scheme(2, 0), {"memory_limit": -1}, "memory_limit=-1"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(scheme, arguments, complaint):
    with pytest.raises(InputError, match=complaint):
        gram_extract(Encodings(np.ones((5, 9)), scheme), **arguments)


def test_supports_that_do_not_belong_to_the_public_vectors_are_refused():
    sim = simulate(Scheme(2, 2), 10, n_public=60, m=30, d=200, rng=1)
    beyond = Supports(sim.selection.public, np.ones(30), "given")
    with pytest.raises(InputError, match="beyond the 10"):
        gram_extract(sim.encodings, sim.public[:10], supports=beyond)
    twice = Supports(np.zeros((30, 2), np.int64), np.ones(30), "given")
    with pytest.raises(InputError, match="twice"):
        gram_extract(sim.encodings, sim.public, supports=twice)
