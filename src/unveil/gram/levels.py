"""What a pair statistic is worth at each overlap: mean, noise and skewness of one pixel, for p shared public and q shared private vectors.

The correlation of two encodings is z(p, q) = (p·a_pub² + q·a_priv²) / (k_pub·a_pub² + k_priv·a_priv²), `lattice`. A statistic is an
average over d pixels, so its mean and noise at every lattice point decide everything: thresholds, error rates, how many
pixels a screen needs. They are integrals over two normal variables, taken in polar coordinates (one kink per angle, no
tails lost).

Two corrections that the printed analysis leaves out, both seen in the error counts:
  * rows are divided by their own root mean square, which takes noise away (at z = 1/2 folded: 0.409 instead of 0.444);
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

from unveil.records import Scheme

Array = NDArray[np.float64]
PairFunction = Callable[[Array, Array], Array]
FOLDED_MEAN = float(np.sqrt(2 / np.pi))


@dataclass(frozen=True, eq=False)
class Levels:
    """Mean, standard deviation and skewness of one pixel's statistic at each lattice point, each (k_public+1, k_private+1).

    raw: the standard deviation when rows are not divided by their own root mean square.
    """

    mean: Array
    sd: Array
    skew: Array
    raw: Array

    def of_part(self, fraction: float) -> Levels:
        """For a sum over this fraction of the pixels, where rows were normalised over all of them: so much less noise is taken away."""
        sd = np.sqrt(self.raw**2 + fraction * (self.sd**2 - self.raw**2))
        return Levels(self.mean, sd, self.skew, self.raw)

    def balanced(self) -> Array:
        """(k_public+1, k_private): where mistaking q for q+1 is as many standard deviations away as the reverse."""
        low, high = self.sd[:, :-1], self.sd[:, 1:]
        return np.asarray((self.mean[:, :-1] * high + self.mean[:, 1:] * low) / (low + high))

    def below(self, score: ArrayLike, p: int, q: int, d: int) -> Array:
        """P(average over d pixels < score) at (p, q)."""
        return np.asarray(norm.cdf(normal_scale(score, self.mean[p, q], self.sd[p, q], self.skew[p, q], d)))

    def quantile(self, probability: float, p: int, q: int, d: int) -> float:
        """The score that an average over d pixels stays below with this probability."""
        x = float(norm.ppf(probability))
        skew = self.skew[p, q] / np.sqrt(d)
        return float(self.mean[p, q] + self.sd[p, q] / np.sqrt(d) * (x + skew * (min(x * x, 9.0) - 1) / 6))


def normal_scale(score: ArrayLike, mean: float, sd: float, skew: float, d: int) -> Array:
    """A score in standard deviations of a normal law; the correction stops where it would turn back."""
    x = (np.asarray(score, dtype=np.float64) - mean) * (np.sqrt(d) / sd)
    s = skew / np.sqrt(d)
    reach = np.clip(x, -1.5 / max(abs(s), 1e-9), 1.5 / max(abs(s), 1e-9))
    return np.asarray(x - s * (reach * reach - 1) / 6)


def lattice(scheme: Scheme) -> Array:
    """z(p, q), shape (k_public+1, k_private+1): the correlation of encodings that share p public and q private vectors."""
    p = np.arange(scheme.k_public + 1)[:, None] * scheme.public_weight**2
    q = np.arange(scheme.k_private + 1)[None, :] * scheme.private_weight**2
    return np.minimum((p + q) / (scheme.public_variance + scheme.private_variance), 1.0)


def folded(a: Array, b: Array) -> Array:
    return (np.abs(a) - FOLDED_MEAN) * (np.abs(b) - FOLDED_MEAN)


def squares(a: Array, b: Array) -> Array:
    return (a * a - 1) * (b * b - 1)


@lru_cache(maxsize=64)
def folded_levels(scheme: Scheme) -> Levels:
    """(|a| − E|a|)(|b| − E|b|): mean Ψ(z), the paper's statistic (`lem:kr17`)."""
    return _over_lattice(folded, lattice(scheme))


@lru_cache(maxsize=64)
def squares_levels(scheme: Scheme) -> Levels:
    """(a² − 1)(b² − 1): mean 2z². Locally optimal at z = 0, but with heavy tails and far noisier from z = 1/2 on."""
    return _over_lattice(squares, lattice(scheme))


@lru_cache(maxsize=64)
def assisted_levels(k_private: int, k_public: int, ratio: float) -> Levels:
    """r_i·r_j of r = y·tanh(yμ/σ²) − μ, in units of σ², where ratio = E[μ²]/σ².

    r, its square and its cube are functions of (g, μ), private part and public part. With their Hermite coefficients
    c_{nl}, Mehler's formula gives E[f_i·f_j] = Σ c_{nl}²·(q/k_private)^n·(p/k_public)^l. For r only odd n + l occur, E[r | μ] = 0
    kills n = 0, and what is left is nearly linear in q: no flat spot at overlap 0.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(96)
    weights = weights / weights.sum()
    degree = 48
    H = np.empty((degree, len(nodes)))
    H[0], H[1] = 1, nodes
    for n in range(1, degree - 1):
        H[n + 1] = (nodes * H[n] - np.sqrt(n) * H[n - 1]) / np.sqrt(n + 1)
    H *= weights
    g, mu = nodes[:, None], np.sqrt(ratio) * nodes[None, :]
    r = (mu + g) * np.tanh((mu + g) * mu) - mu
    private = (np.arange(k_private + 1) / k_private)[:, None] ** np.arange(degree)
    public = (np.arange(k_public + 1) / max(k_public, 1))[:, None] ** np.arange(degree)
    first, second, third = (public @ ((H @ r**power @ H.T) ** 2).T @ private.T for power in (1, 2, 3))
    variance = np.maximum(second - first**2, 1e-12)
    sd = np.sqrt(variance)
    return Levels(first, sd, (third - 3 * first * second + 2 * first**3) / variance**1.5, sd)


def pair_moments(f: PairFunction, z: float) -> tuple[float, float, float, float]:
    """Mean, standard deviation, skewness of f(a, b) over one pixel, a and b divided by the root mean square of their rows; and
    the standard deviation without that division.

    Dividing a row by its own root mean square adds −κ·(a² − 1)/2 per pixel to first order, κ the derivative of E f(s·a, b) in s.
    """
    a, b, w = _polar(min(z, 1.0))
    value = f(a, b)
    mean = float((w * value).sum())
    step = 1e-4
    slope = [
        float((w * (f(a * (1 + x), b * (1 + y)) - f(a * (1 - x), b * (1 - y)))).sum()) / (2 * step)
        for x, y in ((step, 0.0), (0.0, step))
    ]
    u = value - mean - slope[0] * (a * a - 1) / 2 - slope[1] * (b * b - 1) / 2
    sd = max(float(np.sqrt((w * u * u).sum())), 1e-6)
    raw = max(float(np.sqrt((w * (value - mean) ** 2).sum())), 1e-6)
    return mean, sd, float((w * u**3).sum()) / sd**3, raw


def _over_lattice(f: PairFunction, z: Array) -> Levels:
    mean, sd, skew, raw = np.array([pair_moments(f, value) for value in z.ravel()]).T.reshape(4, *z.shape)
    return Levels(mean, sd, np.clip(skew, -30, 30), raw)


def _polar(z: float, angles: int = 1024, radii: int = 64) -> tuple[Array, Array, Array]:
    """Nodes and weights for two standard normal variables with correlation z; f(−a, −b) = f(a, b) halves the circle."""
    x, w = np.polynomial.legendre.leggauss(radii)
    r = 5 * (x + 1)
    theta = np.pi * (np.arange(angles) + 0.5) / angles
    a = r[:, None] * np.cos(theta)
    b = r[:, None] * (z * np.cos(theta) + np.sqrt(1 - z * z) * np.sin(theta))
    return a, b, np.repeat((5 * w * r * np.exp(-r * r / 2) / angles)[:, None], angles, axis=1)
