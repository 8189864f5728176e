"""GramExtract: the kernel against a plain twin, blocks that do not matter, exact overlaps, honest
error counts."""

import numpy as np
import pytest

from unveil import Encodings, Scheme, Supports, gram_extract, simulate
from unveil.checks import InputError
from unveil.encode import selection_matrix
from unveil.paper.gram_extract import overlap_engine, psi
from unveil.paper.overlap_engine import assisted_levels, folded_levels, lattice
from unveil.scheme import FIXED_WEIGHTINGS

EVERY_K = [(k, k_public) for k in range(1, 7) for k_public in (0, 2)]


def true_overlaps(chosen):
    return np.array([[len(set(a) & set(b)) for b in chosen.tolist()] for a in chosen.tolist()])


def known_supports(sim):
    return (
        Supports(sim.selection.public, np.ones(len(sim.selection.public)), "known")
        if sim.public is not None
        else None
    )


def instance(k_private, k_public, weighting="equal", *, n=12, m=40, d=300, rng=0):
    return simulate(
        Scheme(k_private, k_public, weighting), n, n_public=6 if k_public else 0, m=m, d=d, rng=rng
    )


def covariance(y):
    """Folded covariance over E[y²], in float64."""
    y = np.abs(y.astype(np.float64))
    centred = y - y.mean(axis=1, keepdims=True)
    rms = np.sqrt((y**2).mean(axis=1))
    return centred @ centred.T / y.shape[1] / np.outer(rms, rms)


def plain_threshold(scheme, p, q):
    """The covariance between q − 1 and q shared private vectors when p public ones are shared, with
    the lattice written out."""
    a2, b2 = scheme.private_weight**2, scheme.public_weight**2
    total = scheme.k_private * a2 + scheme.k_public * b2
    low, high = (min(1.0, (p * b2 + x * a2) / total) for x in (q - 1, q))
    # As many standard deviations above Ψ(low) as below Ψ(high).
    noise = folded_levels(scheme).sd[p]
    sigmas = (psi(high) - psi(low)) / (noise[q - 1] + noise[q])
    return float(psi(low) + sigmas * noise[q - 1])


def plain(sim):
    """Entry by entry; and how far each entry is from the nearest threshold."""
    scheme, C, shared = (
        sim.encodings.scheme,
        covariance(sim.encodings.values),
        true_overlaps(sim.selection.public),
    )
    levels = [
        [plain_threshold(scheme, p, q) for q in range(1, scheme.k_private + 1)]
        for p in range(scheme.k_public + 1)
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


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
@pytest.mark.parametrize(("k_private", "k_public"), EVERY_K)
def test_overlaps_equal_the_plain_twin(k_private, k_public, weighting):
    sim = instance(k_private, k_public, weighting)
    expected, distance = plain(sim)
    found = gram_extract(
        sim.encodings,
        sim.public,
        supports=known_supports(sim),
        statistic="folded",
    )
    assert found.k_private == k_private
    # float32 may round the other way within 1e-6 of a threshold.
    clear = distance > 1e-6
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(found.toarray()[clear], expected[clear])


# Bytes: 1 forces one row per block, 100,000 a handful, 1 GB all 40 rows at once.
@pytest.mark.parametrize("k_public", [0, 2])
def test_blocks_do_not_matter(k_public):
    sim = instance(2, k_public, d=600)
    whole = gram_extract(
        sim.encodings, sim.public, supports=known_supports(sim), memory_limit=1 << 30
    )
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
    [
        (1, 0, "equal", 600),
        (2, 0, "equal", 4000),
        (3, 0, "convex", 16_000),
        (2, 2, "equal", 30_000),
        (2, 1, "paper", 30_000),
    ],
)
def test_overlaps_are_exact_at_generous_d(k_private, k_public, weighting, d):
    # The smallest step of the lattice, 1/4, is 9.4 standard deviations wide: one wrong pair in
    # 1,770 with probability 0.004.
    sim = instance(k_private, k_public, weighting, n=15, m=60, d=d, rng=1)
    overlaps = gram_extract(sim.encodings, sim.public, supports=known_supports(sim))
    np.testing.assert_array_equal(overlaps.toarray(), true_overlaps(sim.selection.private))
    assert overlaps.expected_errors < 0.05


def test_public_supports_are_learnt_when_not_given():
    sim = instance(2, 2, n=15, m=30, d=30_000, rng=2)
    np.testing.assert_array_equal(
        gram_extract(sim.encodings, sim.public).toarray(), true_overlaps(sim.selection.private)
    )


def test_the_result_is_a_sorted_symmetric_matrix_with_k_on_the_diagonal():
    matrix = gram_extract(instance(3, 0).encodings).tocsr()
    assert matrix.has_sorted_indices
    assert abs(matrix - matrix.T).sum() == 0
    assert (matrix.diagonal() == 3).all()
    assert matrix.data.min() >= 1
    assert matrix.data.max() <= 3


@pytest.mark.parametrize("weighting", FIXED_WEIGHTINGS)
@pytest.mark.parametrize(("k_private", "k_public"), EVERY_K)
def test_thresholds_rise_with_every_shared_vector_and_lie_between_neighbours(
    k_private, k_public, weighting
):
    scheme = Scheme(k_private, k_public, weighting)
    z = lattice(scheme)
    assert z.shape == (k_public + 1, k_private + 1)
    assert z[0, 0] == 0
    assert z[-1, -1] == pytest.approx(1)
    t = folded_levels(scheme).balanced()
    assert t.shape == (k_public + 1, k_private)
    assert (np.diff(t, axis=1) > 0).all()
    assert (np.diff(t, axis=0) > 0).all()
    assert (psi(z[:, :-1]) < t).all()
    assert (t < psi(z[:, 1:])).all()


CASES = [
    (2, 0, "equal", "folded", 700),
    (3, 0, "equal", "folded", 2000),
    (2, 2, "paper", "folded", 700),
    (2, 2, "paper", "assisted", 700),
    (2, 4, "paper", "assisted", 700),
    (3, 2, "equal", "assisted", 700),
]


@pytest.mark.parametrize(("k_private", "k_public", "weighting", "statistic", "d"), CASES)
def test_expected_errors_are_the_errors_that_happen(k_private, k_public, weighting, statistic, d):
    # Dozens of wrong pairs per instance or more, 8 instances. Pairs share encodings, so the
    # standard error comes from the instances. Beyond five of them (t, 7 degrees of freedom: 0.002)
    # or 15 % of model error, the count lies.
    expected, happened, confidence, right = [], [], [], []
    for seed in range(8):
        sim = simulate(
            Scheme(k_private, k_public, weighting),
            40,
            n_public=40 if k_public else 0,
            m=150,
            d=d,
            rng=seed,
        )
        overlaps = gram_extract(
            sim.encodings, sim.public, supports=known_supports(sim), statistic=statistic
        )
        W = selection_matrix(sim.selection.private, 40).toarray().astype(int)
        truth = W @ W.T
        expected.append(overlaps.expected_errors)
        happened.append(np.triu(overlaps.toarray() != truth, 1).sum())
        entries = overlaps.matrix.tocoo()
        off = entries.row != entries.col
        confidence.append(overlaps.confidence[off].mean())
        right.append((entries.data == truth[entries.row, entries.col])[off].mean())
    difference = np.subtract(happened, expected)
    assert np.mean(happened) > 10
    assert abs(difference.mean()) < 5 * difference.std(ddof=1) / np.sqrt(8) + 0.15 * np.mean(
        expected
    )
    assert np.mean(confidence) == pytest.approx(np.mean(right), abs=0.04)


def test_the_confidence_of_an_entry_is_how_often_such_entries_are_right():
    # About 20,000 entries in five bins; neighbouring entries depend on each other, so 0.06 is wide.
    confidence, right = [], []
    for seed in range(6):
        sim = simulate(Scheme(3), 40, m=200, d=1200, rng=seed)
        overlaps = gram_extract(sim.encodings, statistic="folded")
        W = selection_matrix(sim.selection.private, 40).toarray().astype(int)
        entries = overlaps.matrix.tocoo()
        off = entries.row < entries.col
        confidence.append(overlaps.confidence[off])
        right.append((entries.data == (W @ W.T)[entries.row, entries.col])[off])
    confidence, right = np.concatenate(confidence), np.concatenate(right)
    for low in np.arange(0.3, 1.0, 0.1):
        here = (confidence >= low) & (confidence < low + 0.1)
        assert here.sum() < 300 or right[here].mean() == pytest.approx(
            confidence[here].mean(), abs=0.06
        )


def test_assisted_makes_far_fewer_errors_than_folded():
    sim = simulate(Scheme(2, 2, "paper"), 40, n_public=40, m=200, d=1200, rng=0)
    truth = true_overlaps(sim.selection.private)
    wrong = {
        name: np.triu(
            gram_extract(
                sim.encodings, sim.public, supports=known_supports(sim), statistic=name
            ).toarray()
            != truth
        ).sum()
        for name in ("folded", "assisted")
    }
    assert wrong["assisted"] < wrong["folded"] / 20


def test_auto_is_assisted_with_public_vectors_and_folded_without():
    public, private = instance(2, 2), instance(2, 0)
    assert (
        overlap_engine(
            public.encodings, public.public, supports=known_supports(public)
        ).plan.statistic
        == "assisted"
    )
    assert (
        overlap_engine(public.encodings, supports=known_supports(public)).plan.statistic == "folded"
    )
    plan = overlap_engine(private.encodings).plan
    assert (plan.statistic, len(plan.edges)) == ("folded", 1)


def test_a_screened_run_finds_what_one_pass_finds():
    # 2,300 encodings at k=2, d=3072: one pass errs in 0.01 pairs, and the screen loses one in a
    # million of about 26,000.
    sim = simulate(Scheme(2), 400, m=2300, d=3072, rng=3)
    plan = overlap_engine(sim.encodings).plan
    assert len(plan.edges) > 1
    W = selection_matrix(sim.selection.private, 400).astype(int)
    difference = gram_extract(sim.encodings).matrix.astype(int) - W @ W.T
    assert abs(difference).sum() == 0


def test_encodings_in_a_file_give_the_same_bytes_as_in_memory(tmp_path):
    sim = instance(2, 0, d=600)
    np.save(tmp_path / "y.npy", sim.encodings.values)
    mapped = Encodings(np.load(tmp_path / "y.npy", mmap_mode="r"), sim.encodings.scheme)
    assert isinstance(mapped.values, np.memmap)
    a, b = (
        gram_extract(mapped, memory_limit=200_000),
        gram_extract(sim.encodings, memory_limit=200_000),
    )
    assert a.matrix.data.tobytes() == b.matrix.data.tobytes()
    assert a.confidence.tobytes() == b.confidence.tobytes()


@pytest.mark.parametrize("k_public", [0, 2])
def test_the_number_of_workers_changes_no_bit(k_public):
    sim = instance(2, k_public, m=90, d=400)
    found = [
        gram_extract(
            sim.encodings,
            sim.public,
            supports=known_supports(sim),
            memory_limit=100_000,
            workers=workers,
        )
        for workers in (1, 2, 5)
    ]
    for other in found[1:]:
        assert other.matrix.indices.tobytes() == found[0].matrix.indices.tobytes()
        assert other.matrix.data.tobytes() == found[0].matrix.data.tobytes()
        assert other.confidence.tobytes() == found[0].confidence.tobytes()
        assert other.expected_errors == found[0].expected_errors


def test_balanced_thresholds_make_fewer_errors_than_the_papers():
    sim = simulate(Scheme(2), 20, m=120, d=600, rng=0)
    truth = true_overlaps(sim.selection.private)
    balanced, printed = (
        (gram_extract(sim.encodings, method=m).toarray() != truth).sum()
        for m in ("fast", "printed")
    )
    assert balanced < printed / 3


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
    overlaps = gram_extract(
        Encodings(y, sim.encodings.scheme), sim.public, supports=known_supports(sim)
    ).toarray()
    np.testing.assert_array_equal(overlaps[:4, 4:], 0)
    np.testing.assert_array_equal(overlaps[:4, :4], 2 * np.eye(4))
    others = gram_extract(sim.encodings, sim.public, supports=known_supports(sim)).toarray()
    np.testing.assert_array_equal(overlaps[4:, 4:], others[4:, 4:])


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
        (Scheme(2, 0), {"method": "up"}, "method='up': choose one of fast, printed"),
        (Scheme(2, 2), {}, "no public vectors"),
        (Scheme(2, 2), {"public": np.ones((4, 8))}, "8 pixels, encodings 9"),
        (
            Scheme(2, 2),
            {"supports": Supports(np.zeros((5, 1), int), np.ones(5), "x")},
            r"supports of shape \(5, 1\)",
        ),
        (
            Scheme(2, 2),
            {"supports": Supports(np.zeros((4, 2), int), np.ones(4), "x")},
            "for 5 encodings with k_public=2",
        ),
        (Scheme(2, 0), {"memory_limit": -1}, "memory_limit=-1"),
        (Scheme(2, 0), {"workers": 0}, "workers=0"),
        (Scheme(2, 0), {"statistic": "magic"}, "statistic='magic': choose one of auto, folded"),
        (Scheme(2, 0), {"statistic": "assisted"}, "pass public="),
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


def test_who_can_do_without_some_pairs_is_screened_on_fewer_pixels():
    sim = simulate(Scheme(2), 300, m=2100, d=1024, rng=0)
    strict, loose = (overlap_engine(sim.encodings, loss=loss).plan for loss in (1e-6, 0.05))
    assert loose.loss == 0.05
    assert loose.edges[0] < strict.edges[0]
    assert loose.work < strict.work
    with pytest.raises(InputError, match="loss"):
        gram_extract(sim.encodings, loss=0.7)


@pytest.mark.parametrize("scheme", [Scheme(2), Scheme(3, 2, "paper")])
def test_the_folded_product_has_the_mean_psi_and_the_noise_promised(scheme):
    levels, z = folded_levels(scheme), lattice(scheme)
    np.testing.assert_allclose(levels.mean, psi(z), atol=1e-5)
    rng, d = np.random.default_rng(0), 400
    for p, q in ((0, 0), (0, 1), (len(z) - 1, 1)):
        a = rng.standard_normal((20_000, d))
        b = z[p, q] * a + np.sqrt(1 - z[p, q] ** 2) * rng.standard_normal(a.shape)
        a, b = np.abs(a), np.abs(b)
        a /= np.sqrt((a**2).mean(axis=1, keepdims=True))
        b /= np.sqrt((b**2).mean(axis=1, keepdims=True))
        c = (a * b).mean(axis=1) - a.mean(axis=1) * b.mean(axis=1)
        assert c.mean() == pytest.approx(levels.mean[p, q], abs=4 * c.std() / 141 + 2 / d**1.5)
        assert c.std() * np.sqrt(d) == pytest.approx(levels.sd[p, q], rel=0.04)


def test_the_assisted_product_is_linear_in_the_overlap_and_as_noisy_as_promised():
    levels, rng = assisted_levels(2, 2, 1.0), np.random.default_rng(1)
    g, mu = rng.standard_normal((2, 4, 10**6)) / np.sqrt(2)
    first, second = g[0] + g[1], g[0] + g[2]
    m1, m2 = mu[0] + mu[1], mu[2] + mu[3]
    r = [np.abs(m + x) * np.tanh(np.abs(m + x) * m) - m for x, m in ((first, m1), (second, m2))]
    assert (r[0] * r[1]).mean() == pytest.approx(levels.mean[0, 1], abs=0.005)
    assert (r[0] * r[1]).std() == pytest.approx(levels.sd[0, 1], rel=0.02)
    assert levels.mean[0, 0] == pytest.approx(0, abs=1e-6)
    assert levels.mean[0, 1] > 0.4 * levels.mean[0, 2]
