"""The dialects of λ: known answers from scripted numbers, moments against numerical integration,
bounds, refusals.

Moments. A mean of m draws of numbers in [0, 1] with standard deviation s is off by more than 6·s/√m
with probability 2e-9.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx
from scipy.stats import ks_2samp

from unveil.checks import InputError
from unveil.encode.weights import (
    LARGEST,
    LAWS,
    LEAST_FIRST,
    dominant,
    draw_weights,
    possible_laws,
    sample_weights,
)
from unveil.scheme import FIXED_WEIGHTINGS, WEIGHTINGS, Scheme

DRAWN = [w for w in WEIGHTINGS if w not in FIXED_WEIGHTINGS and w != "unknown"]
OPEN = [w for w in DRAWN if w != "half-normal"]


class Script:
    """A generator that says what it is told, row by row."""

    def __init__(self, rows):
        self.rows = list(rows)

    def _next(self, size):
        out, self.rows = self.rows[: size[0]], self.rows[size[0] :]
        assert np.shape(out) == size
        return np.array(out, dtype=float)

    standard_normal = random = _next


def draw(weighting, m, k_private, k_public, seed=0):
    return draw_weights(Scheme(k_private, k_public, weighting), m, np.random.default_rng(seed))


def test_every_drawn_weighting_has_its_law():
    assert set(LAWS) == set(DRAWN)


def test_released_known_answer():
    script = Script(
        [
            [3, -1, 1, 1],  # 3/6 = 0.5, private 4/6: kept
            [9, 1, -1, 1],  # 9/12 = 0.75 > 0.65: drawn again
            [1, -1, 4, 4],  # private 2/10 = 0.2 < 0.3: drawn again
            [-1, 3, 5, 1],  # the second row: 5/10, private 4/10: kept
            [13, 4, 2, 1],  # the third row: 13/20 = 0.65 exactly: kept
        ]
    )
    found = draw_weights(Scheme(2, 2, "released"), 3, script)
    expected = [
        [3 / 6, 1 / 6, 1 / 6, 1 / 6],
        [1 / 10, 3 / 10, 5 / 10, 1 / 10],
        [13 / 20, 4 / 20, 2 / 20, 1 / 20],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert not script.rows


def test_sorted_known_answer():
    script = Script([[0.8, 0.6, 0.2, 0.4]])  # one minus it: 0.2, 0.4, 0.8, 0.6
    np.testing.assert_allclose(
        draw_weights(Scheme(2, 2, "sorted"), 1, script), [[0.4, 0.3, 0.2, 0.1]], rtol=1e-12
    )


def test_uniform_known_answer():
    script = Script([[0.2, 0.6, 0.8, 0.4]])
    np.testing.assert_allclose(
        draw_weights(Scheme(2, 2, "uniform"), 1, script), [[0.4, 0.2, 0.1, 0.3]], rtol=1e-15
    )


def test_half_normal_known_answer():
    script = Script([[-3, 1]])
    np.testing.assert_allclose(
        draw_weights(Scheme(2, 0, "half-normal"), 1, script), [[0.75, 0.25]], rtol=1e-15
    )


def test_dirichlet_known_answer():
    """Dirichlet(1, …, 1) by its definition: exponential numbers divided by their sum, from the same
    seed."""
    numbers = np.random.default_rng(5).standard_exponential((4, 6))
    np.testing.assert_allclose(
        draw("dirichlet", 4, 2, 4, seed=5), numbers / numbers.sum(axis=1, keepdims=True), rtol=1e-12
    )


@pytest.mark.parametrize("weighting", OPEN)
@pytest.mark.parametrize(
    ("k_private", "k_public"), [(2, 4), (1, 1), (2, 0), (4, 2), (1, 0), (0, 3)]
)
def test_rows_are_shares_within_the_bounds_of_their_law(weighting, k_private, k_public):
    weights = draw(weighting, 4000, k_private, k_public)
    assert weights.shape == (4000, k_private + k_public)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    assert weights.min() >= 0
    if weighting in ("released", "dominant") and k_private + k_public > 1:
        assert weights.max() <= LARGEST
        bounded = weighting == "released" and k_private and k_public
        assert not bounded or weights[:, :2].sum(axis=1).min() >= LEAST_FIRST
    elif 1 < k_private + k_public < 6:
        assert weights.max() > LARGEST
    if weighting == "sorted":
        assert all((a >= b).all() for a, b in pairwise(weights.T))


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("weighting", ["uniform", "dirichlet", "half-normal"])
def test_the_second_moment_of_laws_without_bounds(weighting, k):
    """E[(x₁/S)²] = ∫ t·E[x²e^{−tx}]·E[e^{−tx}]^{k−1} dt over t > 0, since 1/S² = ∫ t·e^{−tS} dt."""

    def transform(t, power):
        # The dominant part of e^{−tx} is near 0: integrate in units of 1/t where that is short.
        top = {"uniform": 1.0, "dirichlet": 60.0, "half-normal": 12.0}[weighting]
        density = {
            "uniform": lambda x: 1.0,
            "dirichlet": lambda x: np.exp(-x),
            "half-normal": lambda x: np.sqrt(2 / np.pi) * np.exp(-(x**2) / 2),
        }[weighting]
        return quad(
            lambda x: x**power * density(x) * np.exp(-t * x), 0, min(top, 60 / t), limit=200
        )[0]

    expected = quad(
        lambda t: t * transform(t, 2) * transform(t, 0) ** (k - 1), 1e-9, np.inf, limit=400
    )[0]
    if weighting == "dirichlet":
        assert expected == pytest.approx(2 / (k * (k + 1)), rel=1e-5)
    if weighting == "half-normal":
        assert transform(2.0, 0) == pytest.approx(erfcx(2 / np.sqrt(2)), rel=1e-9)
    squares = (draw(weighting, 200_000, k, 0)[:, 0]) ** 2
    assert abs(squares.mean() - expected) < 6 * squares.std() / np.sqrt(len(squares))


@pytest.mark.parametrize(("k_private", "k_public"), [(1, 1), (1, 2), (2, 1)])
@pytest.mark.parametrize("weighting", ["released"])
def test_the_moments_of_laws_with_bounds(weighting, k_private, k_public):
    """|N(0, 1)| in k dimensions has a uniform direction: moments are integrals over an octant, with
    the bounds as indicator."""
    if k_private + k_public == 2:
        angle = (np.arange(400_000) + 0.5) / 400_000 * np.pi / 2
        points, measure = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.ones(len(angle))
    else:
        u = (np.arange(700) + 0.5) / 700
        height, turn = (
            a.ravel() for a in np.meshgrid(u, u * np.pi / 2)
        )  # equal areas, by Archimedes
        flat = np.sqrt(1 - height**2)
        points, measure = (
            np.stack([flat * np.cos(turn), flat * np.sin(turn), height], axis=1),
            np.ones(height.size),
        )
    shares = points / points.sum(axis=1, keepdims=True)
    measure *= (shares.max(axis=1) <= 0.65) & (shares[:, :2].sum(axis=1) >= 0.3)
    drawn = draw(weighting, 200_000, k_private, k_public)
    for power in (1, 2):
        expected = (measure[:, None] * shares**power).sum(axis=0) / measure.sum()
        error = (
            6 * (drawn**power).std(axis=0) / np.sqrt(len(drawn)) + 3e-4
        )  # the last for the grid at the bounds
        assert (np.abs((drawn**power).mean(axis=0) - expected) < error).all()


def test_bounds_that_contradict_each_other_are_refused_and_do_not_hang():
    with pytest.raises(
        InputError, match=r"41 weights almost never keep the bounds of their law; lower k_public"
    ):
        draw("released", 5, 1, 40)


@pytest.mark.parametrize("weighting", DRAWN)
def test_the_same_seed_gives_the_same_bytes(weighting):
    k_public = 0 if weighting == "half-normal" else 4
    first, again, other = (draw(weighting, 50, 2, k_public, seed) for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_an_unknown_law_has_no_draws_but_a_sample_of_all():
    with pytest.raises(InputError, match="no law to draw weights from"):
        draw_weights(Scheme(2, 4, "unknown"), 10, np.random.default_rng(0))
    laws = [scheme.weighting for scheme in possible_laws(Scheme(2, 4, "unknown"))]
    assert laws == ["released", "uniform", "dirichlet", "sorted", "convex"]
    assert possible_laws(Scheme(2, 0, "unknown"))[-1].weighting == "half-normal"
    weights = sample_weights(Scheme(2, 4, "unknown"), 1000, np.random.default_rng(0))
    assert np.allclose(weights.sum(axis=1), 1)
    assert (weights[-200:] == 1 / 6).all()


def as_described(k, m, rng, first=2):
    """The released code's weights, from its description, one row at a time; `first`: how many slots
    the lower bound is on (the released code has 2)."""
    rows = []
    while len(rows) < m:
        numbers = np.abs(rng.standard_normal((m, k)))
        for row in numbers / numbers.sum(axis=1, keepdims=True):
            if row.max() <= 0.65 and row[:first].sum() >= 0.3:
                rows.append(row)
    return np.array(rows[:m])


@pytest.mark.parametrize(("k_private", "k_public"), [(3, 3), (1, 3), (2, 4), (2, 2), (4, 2)])
def test_released_is_the_law_of_the_released_code(k_private, k_public):
    """Kolmogorov–Smirnov on every slot and on the largest weight; `python -m benchmarks.schemes
    laws` has 2·10⁵ draws each. Seeds are fixed; under the right law one p-value is below 1e-5 with
    probability 1e-5, 7 at most per case."""
    m, k = 20_000, k_private + k_public
    ours = draw("released", m, k_private, k_public, seed=1)
    assert alike(ours, as_described(k, m, np.random.default_rng(2))) > 1e-5


def test_a_bound_on_all_private_slots_is_another_law():
    """What would pass for the released law if the test above could not fail."""
    ours = draw("released", 50_000, 3, 3, seed=1)
    wrong = as_described(6, 20_000, np.random.default_rng(2), first=3)
    assert ks_2samp(ours[:, 0], wrong[:, 0]).pvalue < 1e-9
    # Means of the released code at (3, 3): 0.218, 0.217, 0.141. Standard error 0.0005.
    np.testing.assert_allclose(ours.mean(axis=0)[:3], [0.218, 0.217, 0.141], atol=0.003)


def gradattack(k, m, rng, smallest):
    """GradAttack's weights, from its description: Dirichlet(3, 1, …, 1) as gamma numbers divided by
    their sum, one row at a time, until the largest is at most 0.65 and the smallest at least
    `smallest`."""
    rows = []
    while len(rows) < m:
        numbers = rng.standard_exponential((m, k))
        numbers[:, 0] += rng.standard_exponential((m, 2)).sum(axis=1)
        for row in numbers / numbers.sum(axis=1, keepdims=True):
            if row.max() <= 0.65 and row.min() >= smallest:
                rows.append(row)
    return np.array(rows[:m])


def fdn(k, m, rng):
    """The fusion-denoising generator's weights: uniform numbers, the larger first, divided by their
    sum."""
    numbers = np.sort(rng.uniform(size=(m, k)), axis=1)[:, ::-1]
    return numbers / numbers.sum(axis=1, keepdims=True)


def alike(ours, theirs):
    """The least p-value of a Kolmogorov–Smirnov test on every slot and on the largest weight."""
    pairs = [*zip(ours.T, theirs.T, strict=True), (ours.max(axis=1), theirs.max(axis=1))]
    return min(ks_2samp(a, b).pvalue for a, b in pairs)


@pytest.mark.parametrize("smallest", [0.0, 0.05])
def test_dominant_is_the_law_of_gradattack(smallest):
    ours = dominant(20_000, Scheme(2, 2), np.random.default_rng(1), smallest=smallest)
    assert alike(ours, gradattack(4, 20_000, np.random.default_rng(2), smallest)) > 1e-5
    # A law without the bound on the smallest weight is another one, and so is Dirichlet(1, …, 1).
    other = 0.05 - smallest
    assert alike(ours, gradattack(4, 20_000, np.random.default_rng(3), other)) < 1e-9
    assert alike(ours, draw("dirichlet", 20_000, 2, 2)) < 1e-9


def test_sorted_is_the_law_of_fdn():
    ours = draw("sorted", 20_000, 2, 4, seed=1)
    assert alike(ours, fdn(6, 20_000, np.random.default_rng(2))) > 1e-5
    # Half-normal numbers in descending order are another law. Means: standard error 0.0005.
    wrong = -np.sort(-draw("half-normal", 20_000, 6, 0, seed=3), axis=1)
    assert alike(ours, wrong) < 1e-9
    np.testing.assert_allclose(ours.mean(axis=0)[:2], [0.296, 0.241], atol=0.003)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 8.0])
def test_dirichlet_of_two_is_the_beta_law_of_mixup(alpha):
    scheme = Scheme(2, weighting="dirichlet", signs="kept", alpha=alpha)
    ours = draw_weights(scheme, 20_000, np.random.default_rng(1))
    theirs = np.random.default_rng(2).beta(alpha, alpha, 20_000)
    assert ks_2samp(ours[:, 0], theirs).pvalue > 1e-4
    # A wrong parameter is told apart.
    assert (
        ks_2samp(ours[:, 0], np.random.default_rng(2).beta(2 * alpha, alpha, 20_000)).pvalue < 1e-9
    )
