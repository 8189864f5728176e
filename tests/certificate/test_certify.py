"""The certificate through its public function: right claims are verified, broken ones never.

The oracles are `benchmarks.readings` (every other reading of a small design) and
`benchmarks.certificate.wrong` (is there one private record for each verified vector?).
"""

import numpy as np
import pytest
from scipy import sparse

import unveil
from unveil.certificate import certify

bench = pytest.importorskip("benchmarks.certificate", reason="benchmarks/ is not installed")
readings = pytest.importorskip("benchmarks.readings")


@pytest.mark.parametrize("kind", bench.KINDS)
def test_right_claims_are_verified_and_broken_ones_are_not(kind):
    claim = bench.right_claim(kind, 0)
    recovery = claim.certified()
    assert recovery.verified.mean() > 0.8
    assert not bench.wrong(recovery, claim.X, claim.tolerance)
    for name, other in bench.broken(claim, np.random.default_rng(1)):
        found = other.certified()
        assert not bench.wrong(found, claim.X, claim.tolerance), name


@pytest.mark.parametrize("signed", [True, False])
def test_every_reading_of_small_designs_holds_what_is_verified(signed):
    missed = unique = refused = 0
    for n, k in bench.SMALL:
        for seed in range(3):
            done = readings.compare(n, n + seed * n, k, signed, [5, n, k, seed])
            if done is not None:
                missed, unique, refused = missed + done[0], unique + done[1], refused + done[2]
    assert missed == 0
    assert refused <= 0.2 * unique


def test_another_reading_as_the_claim_is_not_verified():
    """Every other reading of tiny designs reproduces all encodings, and holds wrong records."""
    tried = 0
    for n, m, k, seed in ((5, 7, 2, 0), (6, 8, 2, 1), (5, 9, 3, 2), (6, 15, 2, 3), (4, 6, 2, 4)):
        r = np.random.default_rng(seed)
        rows = readings.design(n, m, k, r)
        W = readings.dense(rows, n)
        if np.linalg.matrix_rank(W) < n:
            continue
        basis = readings.basis_rows(W)
        for D in readings.images(W, basis, (-1, 1))[1][:8]:
            t, wt, scale = readings.images(W * D[:, None], basis, (0, 1))
            T, star = t[wt.any(axis=1)] / scale, wt[wt.any(axis=1)]
            chosen = _exact_cover(star, k, n, T)
            if chosen is None:
                continue
            tried += 1
            X = r.standard_normal((len(chosen), 60)).astype(np.float32)
            claim = (T[chosen].T @ X).astype(np.float32)
            Y = np.abs(star[chosen].T @ X) / np.sqrt(k)
            encodings = unveil.Encodings(Y, unveil.Scheme(k), pixel_rms=None)
            found = certify(encodings, claim, rows)
            assert not bench.wrong(found, X, 1e-2)
    assert tried >= 3


def _exact_cover(columns, k, n, T):
    """Some columns that sum to k in every row, of full rank, not the claimed ones if possible."""
    found = []

    def go(left, chosen):
        if len(found) > 20:
            return
        if not left.any():
            if np.linalg.matrix_rank(T[chosen]) == n:
                found.append(chosen)
            return
        row = int(np.flatnonzero(left)[0])
        for j in np.flatnonzero((columns[:, row] == 1) & (columns <= left).all(axis=1)):
            if not chosen or j >= chosen[-1] or columns[chosen[-1], row] == 0:
                go(left - columns[j], [*chosen, int(j)])

    go(np.full(columns.shape[1], k), [])
    own = [c for c in found if not (np.sort(np.abs(T[c]).sum(axis=0)) == 1).all()]
    return (own or found or [None])[0]


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_list_with_vectors_of_both_signs_leaves_signs_open(k):
    """Most encodings use public vectors that the list has negated: with all vectors negated they
    hold. The others hold with theirs negated, and speak against the sign."""
    sim = unveil.simulate(unveil.Scheme(k, 1), 20, n_public=15, m=200, d=100, rng=0)
    listed = sim.public * np.where(np.arange(15) < 4, 1, -1)[:, None].astype(np.float32)
    members, supports = sim.selection.private, sim.selection.public
    found = certify(sim.encodings, -sim.private, members, listed, supports)
    assert unveil.score(found, sim.private).wrong == 0
    assert found.verified.sum() >= 19
    assert not found.signed
    assert "contradicts itself" in found.explanation
    # Rows that the claim does not name are looked at as well.
    held = np.isin(supports[:, 0], np.arange(4, 15))
    unnamed = np.where(held[:, None], members, -1)
    assert not certify(sim.encodings, -sim.private, unnamed, listed, supports).signed
    assert certify(sim.encodings, sim.private, members, sim.public, supports).signed


@pytest.mark.parametrize("name", ["diabetes", "wine"])
@pytest.mark.parametrize("left_over", [0.0, 0.2])
def test_a_table_with_a_record_too_many(name, left_over):
    """A second name for a record, in rows whose other members are tied at some value, where it is
    read otherwise: one record is behind both names, and one of them at most is verified."""
    load = getattr(pytest.importorskip("sklearn.datasets"), f"load_{name}")
    X = np.unique(load().data, axis=0)[:170]
    X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    n, r = len(X), np.random.default_rng(0)
    rows = np.array([np.sort(r.choice(n, 2, False)) for _ in range(7 * n)])
    encodings = unveil.Encodings(np.abs(X[rows].sum(axis=1)) / np.sqrt(2), unveil.Scheme(2), None)
    right = bench.Claim(encodings, X, X.copy(), rows)
    vectors, members, twice = X.copy(), rows.copy(), r.choice(n, 5, False)
    for i in twice:
        own = np.flatnonzero((members == i).any(axis=1))
        claim = bench.replace(right, vectors=vectors, members=members)
        members, vectors = bench.one_too_many(claim, int(i), own)
    members = np.where(r.random((len(rows), 1)) < left_over, -1, members)
    found = certify(encodings, vectors, members)
    assert not bench.wrong(found, X, 1e-2)
    assert found.verified.sum() >= 0.9 * n
    assert not (found.verified[twice] & found.verified[n:]).any()


def test_a_record_that_is_claimed_twice_is_verified_once():
    sim = unveil.simulate(unveil.Scheme(2), 20, m=160, d=60, rng=0)
    encodings = unveil.Encodings(sim.encodings.values, unveil.Scheme(2), None)
    members = sim.selection.private.copy()
    own = np.flatnonzero((members == 3).any(axis=1))[:4]
    members[own] = np.where(members[own] == 3, 20, members[own])
    found = certify(encodings, np.vstack([sim.private, sim.private[3:4]]), members)
    assert found.verified[:20].all()
    assert found.status[20] == "ambiguous"
    assert "copy" in found.reasons[20]


def test_a_vector_of_another_size_than_stated_is_in_doubt():
    """Record 5 is larger than pixel_rms says: it may have taken in something else."""
    r = np.random.default_rng(0)
    X = r.standard_normal((20, 2000)).astype(np.float32)
    X[5] *= 1.3
    rows = np.array([r.choice(20, 2, False) for _ in range(160)])
    Y = np.abs(X[rows].sum(axis=1)) / np.sqrt(2)
    found = certify(unveil.Encodings(Y, unveil.Scheme(2), 1.0), X, rows)
    assert np.flatnonzero(~found.verified).tolist() == [5]
    assert certify(unveil.Encodings(Y, unveil.Scheme(2), None), X, rows).verified[5]


def test_noise_in_place_of_a_vector_is_not_reproduced():
    sim = unveil.simulate(unveil.Scheme(2), 30, m=150, d=60, rng=0)
    claim = sim.private.copy()
    claim[7] = np.random.default_rng(0).standard_normal(60)
    found = certify(sim.encodings, claim, sim.selection.private)
    assert found.status[7] == "unresolved"
    assert found.verified.sum() == 29


def test_rows_may_be_unknown_and_values_open():
    sim = unveil.simulate(unveil.Scheme(2), 20, m=140, d=60, rng=0)
    members, claim = sim.selection.private.copy(), sim.private.copy()
    members[:20] = -1
    claim[3, 5], opened = 17.0, np.zeros(claim.shape, bool)
    opened[3, 5] = True
    found = certify(sim.encodings, claim, members, doubtful=opened)
    assert found.verified.all()
    assert found.doubtful[3, 5]
    assert found.explained == 120
    claim[4, 6] = np.nan
    assert certify(sim.encodings, claim, members, doubtful=opened).doubtful[4, 6]


def test_members_as_names_or_as_a_matrix_say_the_same():
    sim = unveil.simulate(unveil.Scheme(3), 25, m=150, d=60, rng=1)
    rows = sim.selection.private
    W = sparse.csr_array((np.ones(rows.size, bool), rows.ravel(), np.arange(151) * 3), (150, 25))
    one, two = (certify(sim.encodings, sim.private, members) for members in (rows, W))
    assert (one.status == two.status).all()
    assert one.reasons == two.reasons


def test_few_encodings_per_vector_are_not_called_verified_for_nothing():
    """m = n: hardly anything is proved; and nothing is wrong."""
    sim = unveil.simulate(unveil.Scheme(2), 30, m=33, d=60, rng=2)
    assert certify(sim.encodings, sim.private, sim.selection.private).verified.sum() < 20


@pytest.mark.parametrize(("n", "k", "least"), [(40, 3, 35), (40, 4, 35), (30, 2, 15)])
def test_two_encodings_per_record_of_few_records_prove_most_of_them(n, k, least):
    """No linear form nor eigenvalue shows it of triples; integer programs do."""
    sim = unveil.simulate(unveil.Scheme(k), n, m=2 * n, d=100, rng=10)
    found = certify(sim.encodings, sim.private, sim.selection.private)
    assert found.verified.sum() >= least


def test_a_wrong_scheme_verifies_nothing():
    sim = unveil.simulate(unveil.Scheme(2), 30, m=200, d=60, rng=0)
    told = unveil.Encodings(sim.encodings.values, unveil.Scheme(2, 0, "convex"))
    found = certify(told, sim.private * np.sqrt(2), sim.selection.private)
    assert not found.verified.any()
    assert "scale" in found.reasons[0]


def test_columns_that_say_nothing_prove_nothing():
    r = np.random.default_rng(0)
    X = r.integers(0, 2, (20, 12)).astype(np.float32)
    rows = np.array([r.choice(20, 2, False) for _ in range(140)])
    encodings = unveil.Encodings(X[rows].sum(axis=1) / np.sqrt(2), unveil.Scheme(2), None)
    found = certify(encodings, X, rows)
    assert not found.verified.any()
    assert "take too few values" in found.reasons[0]


def test_a_claim_about_fewer_than_half_of_the_encodings_verifies_nothing():
    """Rows of three records in which one is always there, among others: told as pairs, the claim
    about these rows holds, for vectors that take in half of that record."""
    sim = unveil.simulate(unveil.Scheme(3, 0, "convex"), 12, m=600, d=200, rng=0)
    rows = sim.selection.private
    common = (rows == 0).any(axis=1)
    members = np.full((600, 2), -1)
    members[common] = np.sort(rows[common])[:, 1:] - 1
    told = unveil.Encodings(sim.encodings.values, unveil.Scheme(2, 0, "convex"), None)
    found = certify(told, (sim.private[1:] + sim.private[0] / 2) * (2 / 3), members)
    assert found.explained == common.sum()
    assert not found.verified.any()


def test_nothing_private_is_reproduced_and_not_verified():
    sim = unveil.simulate(unveil.Scheme(0, 3), 0, n_public=12, m=30, d=120, rng=0)
    rows = sim.selection.public
    W = sparse.csr_array((np.full(90, 3**-0.5), rows.ravel(), np.arange(31) * 3), (30, 12))
    found = certify(sim.encodings, sim.public, W != 0, sim.public, weights=W)
    assert found.explained == 30
    assert not found.verified.any()
    V = sim.public.copy()
    V[0] = -V[1]
    assert not certify(sim.encodings, V, W != 0, sim.public, weights=W).verified[0]


def test_a_list_that_is_moved_leaves_all_in_doubt():
    sim = unveil.simulate(unveil.Scheme(2, 1), 25, n_public=30, m=200, d=60, rng=0)
    t = np.random.default_rng(1).standard_normal(60).astype(np.float32)
    both = np.vstack([sim.public, sim.public + t])
    given = sim.private, sim.selection.private
    assert certify(sim.encodings, *given, sim.public, sim.selection.public).verified.mean() > 0.9
    assert not certify(sim.encodings, *given, both, sim.selection.public).verified.any()


def test_a_private_vector_that_is_listed_is_in_doubt():
    sim = unveil.simulate(unveil.Scheme(2, 1), 25, n_public=30, m=200, d=90, rng=0)
    both = np.vstack([sim.public, sim.private[:1]])
    given = sim.private, sim.selection.private, both, sim.selection.public
    found = certify(sim.encodings, *given)
    assert not found.verified[0]
    assert found.verified[1:].mean() > 0.9


def test_a_public_vector_that_is_listed_wrongly_is_not_taken_in():
    """The list has public vector 0 moved by e. Of its encodings only those of record 3 are
    reproduced, in all of which record 3 is claimed with the rest of it."""
    sim = unveil.simulate(unveil.Scheme(2, 1), 14, n_public=6, m=260, d=60, rng=0)
    rows, names = sim.selection.private, sim.selection.public
    with_three, with_zero = (rows == 3).any(axis=1), (names == 0).any(axis=1)
    keep = ~with_three | with_zero
    values, rows, names = sim.encodings.values[keep], rows[keep], names[keep]
    listed = sim.public.copy()
    e = np.random.default_rng(1).standard_normal(60)
    listed[0] += e
    claim = sim.private.copy()
    scheme = sim.encodings.scheme
    claim[3] -= e * scheme.public_weight / scheme.private_weight
    encodings = unveil.Encodings(values, scheme, None)
    found = certify(encodings, claim, rows, listed, names)
    assert found.explained >= 100
    assert not found.verified[3]
    assert found.verified.sum() >= 10


def test_bad_input_is_told_with_its_cure():
    sim = unveil.simulate(unveil.Scheme(2, 1), 8, n_public=5, m=20, d=30, rng=0)
    rows = sim.selection.private
    with pytest.raises(unveil.InputError, match="supports="):
        certify(sim.encodings, sim.private, rows, sim.public)
    with pytest.raises(unveil.InputError, match="same space"):
        certify(sim.encodings, sim.private[:, :9], rows, sim.public, sim.selection.public)
    with pytest.raises(unveil.InputError, match="only 3"):
        certify(sim.encodings, sim.private[:3], rows, sim.public, sim.selection.public)


def test_any_solution_of_columns_with_zeros_ties_and_levels_as_the_claim():
    """Memberships are right; each column of the claim is any solution of its magnitudes."""
    verified = 0
    for seed in range(40):
        r = np.random.default_rng([77, seed])
        k = int(r.choice([2, 2, 3]))
        n = int(r.integers(5, 10)) if k == 2 else int(r.integers(8, 11))
        sizes = n, int(n * r.integers(2, 5)), k
        made = readings.columns_with_other_solutions(*sizes, r, fine=int(r.choice([1, 2, 6])))
        if made is None:
            continue
        rows, X, V = made
        Y = np.abs(X[rows].sum(axis=1)) / np.sqrt(k)
        encodings = unveil.Encodings(Y, unveil.Scheme(k), None)
        found = certify(encodings, V, rows)
        assert not bench.wrong(found, X, 1e-2), seed
        verified += int(found.verified.sum())
    assert verified > 100


def test_encodings_of_mostly_open_values_prove_nothing():
    sim = unveil.simulate(unveil.Scheme(2), 20, m=160, d=60, rng=0)
    opened = np.zeros((20, 60), bool)
    opened[3, :31] = True
    found = certify(sim.encodings, sim.private, sim.selection.private, doubtful=opened)
    assert found.status[3] == "unresolved"
    assert np.delete(found.verified, 3).all()


def test_a_coarse_table_is_verified_up_to_its_step():
    claim = bench.right_claim("eight-bit table", 2)
    found = claim.certified()
    assert found.verified.all()
    assert found.evidence["rounding_step"] > 0
    assert "rounding" in found.reasons[0]


@pytest.mark.parametrize("kind", ["half precision", "eight bits"])
def test_means_over_rounded_encodings_are_verified_up_to_the_step(kind):
    """Least squares, which attacks find, reproduce rounded encodings within a step, not half."""
    claim = bench.right_claim(kind, 0)
    m, n = len(claim.members), len(claim.X)
    W = np.zeros((m, n))
    np.put_along_axis(W, claim.members, 2**-0.5, axis=1)
    y = np.copysign(claim.encodings.values, W @ claim.X)
    means = np.linalg.lstsq(W, y, rcond=None)[0].astype(np.float32)
    found = certify(claim.encodings, means, claim.members)
    assert found.explained == m
    assert found.verified.mean() > 0.9
    assert np.abs(means - claim.X)[found.verified].max() < found.evidence["rounding_step"]


def test_a_short_list_with_vectors_of_both_signs_still_proves_records():
    """Forty-six encodings of thirteen records, eight public vectors: other choices of these are
    excluded for all of them together only."""
    r = np.random.default_rng(1)
    X, P = (r.standard_normal((count, 200)).astype(np.float32) for count in (13, 8))
    rows = np.array([np.sort(r.choice(13, 2, False)) for _ in range(60)])
    names = r.integers(0, 8, (60, 1))
    scheme = unveil.Scheme(2, 1)
    Y = X[rows].sum(axis=1) * scheme.private_weight + P[names[:, 0]] * scheme.public_weight
    found = certify(unveil.Encodings(np.abs(Y), scheme, None), X, rows, P, names)
    assert found.verified.sum() >= 12
    assert not bench.wrong(found, X, 1e-2)
