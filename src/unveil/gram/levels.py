"""What a pair statistic is worth at each overlap: mean, noise and skewness of one pixel, for p
shared public and q shared private vectors.

The correlation of two encodings is z(p, q) = (p·a_pub² + q·a_priv²) / (k_pub·a_pub² +
k_priv·a_priv²), `lattice`. A statistic is an average over d pixels, so its mean and noise at every
lattice point decide everything: thresholds, error rates, how many pixels a screen needs. They are
integrals over two normal variables, taken in polar coordinates (kinks lie on angles, no tail is
lost).

Two corrections that the printed analysis leaves out, both seen in the error counts:
  * rows are divided by their own root mean square, which takes noise away (at z = 1/2 folded: 0.409
  instead of 0.443);
  * sums of skew terms have a heavier upper tail than the normal law: x standard deviations count as
    x − skew/√d·(x² − 1)/6 (Cornish and Fisher's first term).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from unveil.folded import signed
from unveil.scheme import Scheme

Array = NDArray[np.float64]
OfMeans = Callable[[Array], float]
REACH, NO_SKEW = 1.5, 1e-9
"""Cornish and Fisher's term x − s·(x² − 1)/6 turns back at x = 3/s; half-way there it stops. A skew
below 1e-9 changes nothing."""
FAR = 9.0
"""x² in a quantile's correction at most: three standard deviations, beyond which the term is no
longer small."""
STEP = 1e-4
"""Of central differences: their error is 1e-8, rounding leaves 1e-8 in the second one."""
LEAST_SD = 1e-6
"""Least standard deviation: at z = 1 a normalised statistic has none, and skewness divides by
it."""
MOST_SKEW = 30.0
"""Skewness is cut here: beyond, the correction has no meaning."""
ANGLES, RADII, RADIUS = 1024, 64, 10.0
"""Nodes of the polar rule, out to ten standard deviations: moments are right to 2e-6, kinks lie on
angles."""
NODES, DEGREE = 96, 48
"""Gauss–Hermite nodes, and Hermite polynomials kept: half as many, so that their products are still
integrated exactly."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Mean, standard deviation and skewness of one pixel's statistic at each lattice point, each
    (k_public+1, k_private+1).

    raw_sd, raw_skew: the same when rows are not divided by their own root mean square.
    """

    mean: Array
    sd: Array
    skew: Array
    raw_sd: Array
    raw_skew: Array

    def of_part(self, fraction: float) -> Levels:
        """For a sum over this fraction of the pixels, where rows were normalised over all of them:
        so much less noise is taken away."""
        # Normalising correlates with the sum by as much as the sum has of all pixels.
        sd = np.sqrt(self.raw_sd**2 + fraction * (self.sd**2 - self.raw_sd**2))
        skew = self.raw_skew + fraction * (self.skew - self.raw_skew)
        return Levels(self.mean, sd, skew, self.raw_sd, self.raw_skew)

    def balanced(self) -> Array:
        """(k_public+1, k_private): where mistaking q for q+1 is as many standard deviations away as
        the reverse."""
        low, high = self.sd[:, :-1], self.sd[:, 1:]
        return np.asarray((self.mean[:, :-1] * high + self.mean[:, 1:] * low) / (low + high))

    def below(self, score: ArrayLike, p: int, q: int, d: int) -> Array:
        """P(average over d pixels < score) at (p, q)."""
        return np.asarray(
            norm.cdf(normal_scale(score, self.mean[p, q], self.sd[p, q], self.skew[p, q], d))
        )

    def quantile(self, probability: float, p: int, q: int, d: int) -> float:
        """The score that an average over d pixels stays below with this probability."""
        x = float(norm.ppf(probability))
        skew = self.skew[p, q] / np.sqrt(d)
        return float(
            self.mean[p, q] + self.sd[p, q] / np.sqrt(d) * (x + skew * (min(x * x, FAR) - 1) / 6)
        )


def normal_scale(score: ArrayLike, mean: float, sd: float, skew: float, d: int) -> Array:
    """A score in standard deviations of a normal law; the correction stops where it would turn
    back."""
    x = (np.asarray(score, dtype=np.float64) - mean) * (np.sqrt(d) / sd)
    s = skew / np.sqrt(d)
    reach = np.clip(x, -REACH / max(abs(s), NO_SKEW), REACH / max(abs(s), NO_SKEW))
    return np.asarray(x - s * (reach * reach - 1) / 6)


def lattice(scheme: Scheme) -> Array:
    """z(p, q), shape (k_public+1, k_private+1): the correlation of encodings that share p public
    and q private vectors."""
    p = np.arange(scheme.k_public + 1)[:, None] * scheme.public_weight**2
    q = np.arange(scheme.k_private + 1)[None, :] * scheme.private_weight**2
    return np.minimum((p + q) / (scheme.public_variance + scheme.private_variance), 1.0)


@lru_cache(maxsize=64)
def folded_levels(scheme: Scheme) -> Levels:
    """(|a| − E|a|)(|b| − E|b|): mean Ψ(z), the paper's statistic (`lem:kr17`)."""
    return _over_lattice(_folded, lattice(scheme))


@lru_cache(maxsize=64)
def squares_levels(scheme: Scheme) -> Levels:
    """(a² − 1)(b² − 1): mean 2z². Locally optimal at z = 0, but with heavy tails and far noisier
    from z = 1/2 on."""
    return _over_lattice(_squares, lattice(scheme))


@lru_cache(maxsize=64)
def assisted_levels(k_private: int, k_public: int, ratio: float) -> Levels:
    """r_i·r_j of r = y·tanh(yμ/σ²) − μ, in units of σ², where ratio = E[μ²]/σ².

    r, its square and its cube are functions of (g, μ), private part and public part. With their
    Hermite coefficients c_{nl}, Mehler's formula gives E[f_i·f_j] = Σ
    c_{nl}²·(q/k_private)^n·(p/k_public)^l. For r only odd n + l occur, E[r | μ] = 0 kills n = 0,
    and what is left is nearly linear in q: no flat spot at overlap 0.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    weights = weights / weights.sum()
    degree = DEGREE
    # Normalised Hermite polynomials by their recurrence, weights of the nodes included.
    H = np.empty((degree, len(nodes)))
    H[0], H[1] = 1, nodes
    for n in range(1, degree - 1):
        H[n + 1] = (nodes * H[n] - np.sqrt(n) * H[n - 1]) / np.sqrt(n + 1)
    H *= weights
    g, mu = nodes[:, None], np.sqrt(ratio) * nodes[None, :]
    r = signed(mu + g, mu) - mu
    # Mehler: a coefficient of degree n counts with the n-th power of the correlation.
    private = (np.arange(k_private + 1) / k_private)[:, None] ** np.arange(degree)
    public = (np.arange(k_public + 1) / max(k_public, 1))[:, None] ** np.arange(degree)
    first, second, third = (
        public @ ((H @ r**power @ H.T) ** 2).T @ private.T for power in (1, 2, 3)
    )
    variance = np.maximum(second - first**2, 1e-12)
    sd = np.sqrt(variance)
    skew = (third - 3 * first * second + 2 * first**3) / variance**1.5
    return Levels(first, sd, skew, sd, skew)


def _folded(a: Array, b: Array) -> tuple[Array, OfMeans]:
    a, b = np.abs(a), np.abs(b)
    return np.stack(
        [a * b, a, b, a * a, b * b]
    ), lambda t: (t[0] - t[1] * t[2]) / np.sqrt(t[3] * t[4])


def _squares(a: Array, b: Array) -> tuple[Array, OfMeans]:
    return np.stack([a * a * b * b, a * a, b * b]), lambda t: t[0] / (t[1] * t[2]) - 1


def _over_lattice(statistic: Callable[[Array, Array], tuple[Array, OfMeans]], z: Array) -> Levels:
    return Levels(
        *np.array([_moments(statistic, value) for value in z.ravel()]).T.reshape(5, *z.shape)
    )


def _moments(statistic: Callable[[Array, Array], tuple[Array, OfMeans]], z: float) -> list[float]:
    """Mean, standard deviation, skewness for one pixel, and the last two without normalisation, of
    a function h of pixel means t.

    The delta method: to first order h moves by u = ∇h·t; Edgeworth's skewness is E[u³] +
    3·∇hᵀΣHΣ∇h, H the second derivatives: what normalising bends must be in it. Without
    normalisation h is the first mean, centred at the true means of the others.
    """
    # 1. Means, and their covariance, over one pixel.
    a, b, w = polar_nodes(z)
    terms, h = statistic(a, b)
    T = terms.reshape(len(terms), -1)
    weights = w.ravel()
    centre = T @ weights
    T = T - centre[:, None]
    covariance = (T * weights) @ T.T
    # 2. How h depends on them: first and second derivatives.
    step = STEP
    at = np.eye(len(centre)) * step
    gradient = np.array([h(centre + e) - h(centre - e) for e in at]) / (2 * step)
    second = np.array(
        [
            [
                h(centre + e + f) - h(centre + e - f) - h(centre - e + f) + h(centre - e - f)
                for f in at
            ]
            for e in at
        ]
    ) / (4 * step * step)
    # 3. The moments of h, and those without normalisation.
    u = gradient @ T
    sd = max(float(np.sqrt(u * u @ weights)), LEAST_SD)
    skew = (
        float(u**3 @ weights) + 3 * float(gradient @ covariance @ second @ covariance @ gradient)
    ) / sd**3
    # The same function with the last two means, the rows' mean squares, held fixed.
    v = gradient[:-2] @ T[:-2]
    # Squares: (a² − 1)(b² − 1), so that the rows' mean squares stay in to first order.
    if len(centre) == 3:
        v = T[0] - T[1] - T[2]
    raw = max(float(np.sqrt(v * v @ weights)), LEAST_SD)
    return [
        float(h(centre)),
        sd,
        float(np.clip(skew, -MOST_SKEW, MOST_SKEW)),
        raw,
        float(np.clip(v**3 @ weights / raw**3, -MOST_SKEW, MOST_SKEW)),
    ]


def polar_nodes(z: float) -> tuple[Array, Array, Array]:
    """Nodes and weights for two standard normal variables with correlation z; f(−a, −b) = f(a, b)
    halves the circle."""
    x, w = np.polynomial.legendre.leggauss(RADII)
    r = RADIUS / 2 * (x + 1)
    # Midpoints in between: no node on an axis, where |a| has its kink.
    theta = np.pi * (np.arange(ANGLES) + 0.5) / ANGLES
    a = r[:, None] * np.cos(theta)
    b = r[:, None] * (z * np.cos(theta) + np.sqrt(1 - z * z) * np.sin(theta))
    return (
        a,
        b,
        np.repeat((RADIUS / 2 * w * r * np.exp(-r * r / 2) / ANGLES)[:, None], ANGLES, axis=1),
    )
