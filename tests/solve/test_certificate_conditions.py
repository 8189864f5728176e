"""Each condition of the certificate is needed: an exact but wrong reading is refused, and verified
once the condition is gone.

A trial is a wrong reading (members, values) of encodings of other vectors, which it reproduces at
every pixel.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

import unveil.certify.certificate as certificate
import unveil.certify.core as uniqueness_core
import unveil.certify.design as uniqueness
from unveil import Encodings, Scheme
from unveil.records import VERIFIED
from unveil.solve.model import PublicPart
from unveil.solve.pixels.pixels import PixelSolution

D = 120
GROWN = uniqueness._grown


@dataclass(frozen=True, eq=False)
class Trial:
    """truth (true vectors) behind y (rows, D), and the reading that is certified; weights are 1."""

    truth: np.ndarray
    y: np.ndarray
    members: np.ndarray
    values: np.ndarray
    facts: dict = field(default_factory=dict)
    public: PublicPart | None = None


def wrong(trial):
    """How many vectors of the reading are verified that are none of the true ones, up to a sign."""
    k = trial.members.shape[1]
    scheme = Scheme(k, 0 if trial.public is None else 1)
    n = len(trial.values)
    solution = PixelSolution(
        trial.values, np.zeros(D), np.ones(D, bool), np.zeros(n, np.int64), np.zeros(n, np.int64)
    )
    encodings = Encodings(trial.y * scheme.private_weight, scheme, trial.facts.get("rms"))
    status, _ = certificate.certify(
        encodings,
        trial.members,
        len(trial.members),
        solution,
        public=trial.public,
        signed=trial.public is not None,
    )
    return int(((status == VERIFIED) & untrue(trial)).sum())


def wrongly_certain(trial):
    """The same of the design alone: how many are said to be in every reading."""
    names = None if trial.public is None else trial.public.names
    doubt = uniqueness.in_doubt(
        trial.members, len(trial.values), signed=names is not None, public=names, own_rows=True
    ).doubt
    return int((~doubt & untrue(trial)).sum())


def untrue(trial):
    """Vectors of the reading that are none of the true ones, up to a sign; the reading reproduces
    all encodings."""
    c = (
        0
        if trial.public is None
        else trial.public.weight * trial.public.vectors[trial.public.names].sum(axis=1)
    )
    np.testing.assert_allclose(
        np.abs(trial.values[trial.members].sum(axis=1) + c), trial.y, atol=1e-5
    )
    apart = [min(np.abs(v - t).max() for t in (*trial.truth, *-trial.truth)) for v in trial.values]
    return np.array(apart) > 1e-2


def gaussian(n, seed=0):
    return np.random.default_rng(seed).standard_normal((n, D))


def random_rows(n, k, m, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([np.sort(rng.choice(n, k, replace=False)) for _ in range(m)])


def read(truth, rows, members, values, **facts):
    return Trial(truth, np.abs(truth[rows].sum(axis=1)), members, values, facts)


def complements(k):
    """n = 2k: x'_i = Σx/k − x_i, every row its complement."""
    x, rows = gaussian(2 * k), np.unique(random_rows(2 * k, k, 60), axis=0)
    others = np.array([np.setdiff1d(np.arange(2 * k), row) for row in rows])
    return read(x, rows, others, x.sum(axis=0) / k - x)


def complements_but_one():
    """n = 2k + 1: complements without vector 0, with the other sign; rows with it stay. x' = x −
    Σ/k, x'₀ = x₀ + (k−1)Σ/k."""
    k = 3
    x, rows = gaussian(2 * k + 1), np.unique(random_rows(2 * k + 1, k, 80), axis=0)
    others = np.array(
        [row if row[0] == 0 else np.setdiff1d(np.arange(1, 2 * k + 1), row) for row in rows]
    )
    total = x[1:].sum(axis=0) / k
    return read(x, rows, others, np.vstack([x[0] + (k - 1) * total, x[1:] - total]))


def six_of_which_three():
    """Six vectors that every row meets in 0 or 3: x'_i = Σ/3 − x_i among them."""
    rng = np.random.default_rng(0)
    rows = [np.append(rng.choice(6, 3, False), 6 + rng.choice(10, 1)) for _ in range(60)]
    rows = np.array(rows + [6 + rng.choice(10, 4, False) for _ in range(60)])
    x = gaussian(16)
    values = x.copy()
    values[:6] = x[:6].sum(axis=0) / 3 - x[:6]
    others = np.array(
        [[*np.setdiff1d(np.arange(6), r), *r[r >= 6]] if (r < 6).any() else r for r in rows]
    )
    return read(x, rows, others, values)


def twisted():
    """K₃,₃ with one side on u = 0 and the other on v = 1: a' = a + u − v and b' = b − u + v, with u
    and v exchanged."""
    n = 45  # more than are enumerated one by one
    a, b = range(n, n + 3), range(n + 3, n + 6)
    core = np.unique(random_rows(n, 2, 6 * n), axis=0)
    part = [(i, j) for i in a for j in b]
    rows = np.array([*core, *part, *((0, i) for i in a), *((1, j) for j in b)])
    others = np.array([*core, *part, *((1, i) for i in a), *((0, j) for j in b)])
    x = gaussian(n + 6)
    values = x.copy()
    values[n : n + 3] += x[0] - x[1]
    values[n + 3 :] += x[1] - x[0]
    return read(x, rows, others, values)


def always_with_another(n=12):
    """i = n occurs with j only: x_i + x_j − x_l, with l for j."""
    core = random_rows(n, 3, 10 * n)
    rows, others = ([(n, j, a) for a in range(2, n)] for j in (0, 1))
    x = gaussian(n + 1)
    values = x.copy()
    values[n] += x[0] - x[1]
    return read(x, np.vstack([core, rows]), np.vstack([core, others]), values)


def two_partners():
    """|i + a| and |i + b| are |i' + b| and |i' + a| with i' = −(i + a + b)."""
    core = np.unique(random_rows(12, 2, 60), axis=0)
    x = gaussian(13)
    values = x.copy()
    values[12] = -(x[12] + x[0] + x[1])
    return read(
        x, np.vstack([core, [[12, 0], [12, 1]]]), np.vstack([core, [[12, 1], [12, 0]]]), values
    )


def swapped_of_known_size():
    """The same with two rows only, where the size of pixels is known: size alone decides."""
    core = random_rows(25, 3, 200)
    x = gaussian(26)
    values = x.copy()
    values[25] += x[0] - x[1]
    rows, others = ([(25, j, 4), (25, j, 5)] for j in (0, 1))
    return read(x, np.vstack([core, rows]), np.vstack([core, others]), values, rms=1.0)


def triangle_as_a_star():
    """Rows ab, bc, ca are those of a vector that is not there: −(a + b + c), with c, a, b."""
    core = np.unique(random_rows(12, 2, 60), axis=0)
    core = core[core.max(axis=1) > 2]
    x = gaussian(12)
    values = np.vstack([x, -x[:3].sum(axis=0)])
    rows, others = np.array([[0, 1], [1, 2], [0, 2]]), np.array([[2, 12], [0, 12], [1, 12]])
    return read(x, np.vstack([core, rows]), np.vstack([core, others]), values)


def another_weighting():
    """Weights 1/√2 told where they were ½: all values are too small."""
    x, rows = gaussian(12), random_rows(12, 2, 90)
    return Trial(x, np.abs(x[rows].sum(axis=1)) / np.sqrt(2), rows, x / np.sqrt(2), {"rms": 1.0})


def one_vector_in_all():
    """c + x_a + x_b, told as pairs: x + c/2."""
    x, rows = gaussian(13), random_rows(12, 2, 90)
    values = x[:12] + x[12] / 2
    scale = np.sqrt(np.mean(values**2))
    return Trial(
        x / scale, np.abs(values[rows].sum(axis=1)) / scale, rows, values / scale, {"rms": 1.0}
    )


def another_public_vector_in_all():
    """Every row holds public vector 1, taken for 0: x + (p₁ − p₀)/2."""
    x, rows = gaussian(12), random_rows(12, 2, 90)
    P = gaussian(2, 5).astype(np.float32)
    y = np.abs(x[rows].sum(axis=1) + P[1])
    names = np.zeros((len(rows), 1), np.int64)
    return Trial(x, y, rows, x + (P[1].astype(float) - P[0]) / 2, {}, PublicPart(names, P, 1.0))


def none_of(members, x, *rest, **options):
    return np.zeros(len(x), bool)


def everything(members, n, *rest, **options):
    return np.ones(n, bool)


def no_doubt(members, n, **options):
    return uniqueness.Doubts(np.zeros(n, bool), ("",) * n, n, np.zeros(n, bool))


CERTIFICATE = {
    "design": (six_of_which_three, "in_doubt", no_doubt),
    "relabelling": (swapped_of_known_size, "relabelled", none_of),
    "alias": (triangle_as_a_star, "dependent", none_of),
    "scale": (another_weighting, "doubt_about_all", lambda *facts: ""),
    "common part": (one_vector_in_all, "doubt_about_all", lambda *facts: ""),
}

DESIGN = {
    "heavy pairs": (twisted, uniqueness_core, "heavy_pairs", everything),
    "odd walks": (
        lambda: complements(2),
        uniqueness_core,
        "disjoint_odd_walks",
        lambda edges, n, enough: enough,
    ),
    "whole columns": (
        lambda: always_with_another(45),
        uniqueness_core,
        "whole_columns_heavy",
        lambda rows, n, *facts: (everything(rows, n), np.zeros(len(rows))),
    ),
    "fractions": (complements_but_one, uniqueness_core, "fractions_heavy", lambda *facts: True),
    "few vectors": (lambda: complements(3), uniqueness, "small_design", everything),
    "no common member": (
        always_with_another,
        uniqueness,
        "_in_all",
        lambda new, others, rows, n: np.zeros(n, bool),
    ),
    "enough partners": (
        two_partners,
        uniqueness,
        "_grown",
        lambda m, p, known, signed: GROWN(m, p, known, True),
    ),
    "public part": (
        another_public_vector_in_all,
        uniqueness,
        "public_fixed",
        lambda m, p, known: known,
    ),
}


@pytest.mark.parametrize("condition", CERTIFICATE)
def test_without_the_condition_a_wrong_vector_is_verified(condition, monkeypatch):
    make, name, instead = CERTIFICATE[condition]
    trial = make()
    assert wrong(trial) == 0
    monkeypatch.setattr(certificate, name, instead)
    assert wrong(trial) > 0


@pytest.mark.parametrize("condition", DESIGN)
def test_without_the_condition_a_wrong_vector_is_certain(condition, monkeypatch):
    make, where, name, instead = DESIGN[condition]
    trial = make()
    assert wrongly_certain(trial) == 0
    monkeypatch.setattr(where, name, instead)
    assert wrongly_certain(trial) > 0


def test_rank_is_needed(monkeypatch):
    """A bipartite design has another solution, x ± t, with the same subsets: what is not determined
    is not certain."""
    rows = np.array([(i, j) for i in range(6) for j in range(6, 12)])
    x = gaussian(12)
    values = x + np.where(np.arange(12) < 6, 1, -1)[:, None] * gaussian(1, 3)
    trial = read(x, rows, rows, values)
    assert wrong(trial) == 0
    monkeypatch.setattr(certificate, "undetermined_by", everything)
    assert wrong(trial) == 0
    monkeypatch.setattr(certificate, "undetermined_by", lambda members, n: np.zeros(n, bool))
    monkeypatch.setattr(certificate, "in_doubt", no_doubt)
    assert wrong(trial) > 0
