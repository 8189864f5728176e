"""What a product of two encodings says about their overlap: features, their law, the likelihood.

Encodings that share p public and q private vectors have the correlation

    z(p, q) = (p·a_pub² + q·a_priv²) / (k_pub·a_pub² + k_priv·a_priv²)                   `lattice`

A *feature* turns each encoding into a row, so that the product of two rows is an average over
pixels whose mean is a known function of p and q:

    folded     (|y| − mean)/rms       mean Ψ(z): the paper's statistic (`alg:private_attack`)
    assisted   y·tanh(yμ/σ²) − μ      μ the known public part, σ² the variance of the private part:
                                      its posterior mean; nearly linear in q, no flat spot at q = 0

Mean, standard deviation and skewness of one pixel's term at every (p, q) decide everything else:
thresholds, error rates, how many pixels a screen needs (`Levels`). They are integrals over two
normal variables. Two corrections that the printed analysis leaves out show in the error counts:
rows are divided by their own root mean square, which takes noise away (at z = 1/2: 0.409 instead of
0.443 per pixel); and sums of skew terms have a heavier upper tail than the normal law.

Pairs that a product leaves in doubt are decided by their likelihood (`log_ratios`): the density of
(|a|, |b|) at correlation z is, up to what does not depend on z,

    −½·log(1 − z²) − (a² + b²)·z²/(2(1 − z²)) + log cosh(z·a·b/(1 − z²)).

It needs 10 to 40% fewer pixels than the product, at hundreds of times its price.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm

from unveil.checks import InputError, row_blocks
from unveil.encodings import Encodings
from unveil.engine.folded import log_2cosh, signed
from unveil.scheme import Scheme

Array = NDArray[np.float64]
Floats = NDArray[np.float32]
Statistic = Literal["folded", "assisted"]


# --- The law of one pixel ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Levels:
    """Mean, standard deviation and skewness of one pixel's term at each lattice point, arrays of
    shape (k_public+1, k_private+1); raw: the same where rows are not divided by their own root mean
    square."""

    mean: Array
    sd: Array
    skew: Array
    raw_sd: Array
    raw_skew: Array

    def of_part(self, fraction: float) -> Levels:
        """For a sum over this fraction of the pixels where rows were normalised over all of them:
        so much less noise is taken away."""
        sd = np.sqrt(self.raw_sd**2 + fraction * (self.sd**2 - self.raw_sd**2))
        skew = self.raw_skew + fraction * (self.skew - self.raw_skew)
        return Levels(self.mean, sd, skew, self.raw_sd, self.raw_skew)

    def balanced(self) -> Array:
        """(k_public+1, k_private): where mistaking q for q+1 is as many standard deviations away as
        the reverse."""
        low, high = self.sd[:, :-1], self.sd[:, 1:]
        return np.asarray((self.mean[:, :-1] * high + self.mean[:, 1:] * low) / (low + high))

    def normal_scale(self, score: ArrayLike, p: int, q: int, d: int) -> Array:
        """An average over d pixels in standard deviations of a normal law: Cornish and Fisher's
        x − s·(x² − 1)/6, which stops half-way to where it would turn back."""
        x = (np.asarray(score, np.float64) - self.mean[p, q]) * (np.sqrt(d) / self.sd[p, q])
        s = self.skew[p, q] / np.sqrt(d)
        reach = 1.5 / max(abs(s), 1e-9)
        return np.asarray(x - s * (np.clip(x, -reach, reach) ** 2 - 1) / 6)

    def below(self, score: ArrayLike, p: int, q: int, d: int) -> Array:
        """P(average over d pixels < score) at (p, q)."""
        return np.asarray(norm.cdf(self.normal_scale(score, p, q, d)))

    def quantile(self, probability: float, p: int, q: int, d: int) -> float:
        """The score that an average over d pixels stays below with this probability."""
        x = float(norm.ppf(probability))
        s = self.skew[p, q] / np.sqrt(d)
        return float(
            self.mean[p, q] + self.sd[p, q] / np.sqrt(d) * (x + s * (min(x * x, 9) - 1) / 6)
        )

    def log_odds(self, score: ArrayLike, p: int, q: int, d: int) -> Array:
        """Log-likelihood ratio of q+1 against q, given the score and p."""
        high, low = (self.normal_scale(score, p, level, d) for level in (q + 1, q))
        return np.asarray((low**2 - high**2) / 2 - np.log(self.sd[p, q + 1] / self.sd[p, q]))


def lattice(scheme: Scheme) -> Array:
    """z(p, q), shape (k_public+1, k_private+1)."""
    p = np.arange(scheme.k_public + 1)[:, None] * scheme.public_weight**2
    q = np.arange(scheme.k_private + 1)[None, :] * scheme.private_weight**2
    return np.minimum((p + q) / (scheme.public_variance + scheme.private_variance), 1.0)


@lru_cache(maxsize=64)
def folded_levels(scheme: Scheme) -> Levels:
    """The law of (|a| − E|a|)(|b| − E|b|), mean Ψ(z) (`lem:kr17`)."""
    z = lattice(scheme)
    rows = np.array([_folded_moments(float(value)) for value in z.ravel()])
    return Levels(*rows.T.reshape(5, *z.shape))


def _folded_moments(z: float) -> list[float]:
    """Mean, sd, skewness of one pixel, and the last two without normalisation.

    The statistic is h(t) = (t₀ − t₁t₂)/√(t₃t₄) of the pixel means t of |ab|, |a|, |b|, a², b². To
    first order it moves by u = ∇h·t; Edgeworth's skewness is E[u³] + 3·∇hᵀΣHΣ∇h.
    """
    a, b, weights = (array.ravel() for array in polar_nodes(z))
    a, b = np.abs(a), np.abs(b)
    T = np.stack([a * b, a, b, a * a, b * b])
    t = T @ weights
    T = T - t[:, None]
    covariance = (T * weights) @ T.T
    # Gradient and second derivatives of h at t₃ = t₄ = 1.
    mu, c = t[1], t[0] - t[1] * t[2]
    gradient = np.array([1, -mu, -mu, -c / 2, -c / 2])
    H = np.zeros((5, 5))
    H[0, 3:] = H[3:, 0] = -0.5
    H[1, 2] = H[2, 1] = -1
    H[1:3, 3:] = H[3:, 1:3] = mu / 2
    H[3:, 3:] = [[3 * c / 4, c / 4], [c / 4, 3 * c / 4]]
    u, v = gradient @ T, gradient[:3] @ T[:3]
    # At z = 1 the normalised statistic hardly varies: skewness must not divide by nothing.
    sd, raw = (max(float(np.sqrt(x * x @ weights)), 1e-6) for x in (u, v))
    bent = 3 * float(gradient @ covariance @ H @ covariance @ gradient)
    skew = np.clip([(u**3 @ weights + bent) / sd**3, v**3 @ weights / raw**3], -30, 30)
    return [float(c), sd, float(skew[0]), raw, float(skew[1])]


def polar_nodes(z: float, angles: int = 1024, radii: int = 64) -> tuple[Array, Array, Array]:
    """Nodes and weights for two standard normal variables with correlation z. Polar coordinates:
    kinks lie on angles, and f(−a, −b) = f(a, b) halves the circle; right to 2e-6."""
    x, w = np.polynomial.legendre.leggauss(radii)
    r = 5.0 * (x + 1)  # out to ten standard deviations
    # Midpoints: no node on an axis, where |a| has its kink.
    theta = np.pi * (np.arange(angles) + 0.5) / angles
    a = r[:, None] * np.cos(theta)
    b = r[:, None] * (z * np.cos(theta) + np.sqrt(1 - z * z) * np.sin(theta))
    return a, b, np.repeat((5.0 * w * r * np.exp(-r * r / 2) / angles)[:, None], angles, axis=1)


@lru_cache(maxsize=64)
def assisted_levels(
    k_private: int, k_public: int, ratio: float, nodes: int = 96, degree: int = 48
) -> Levels:
    """The law of r_i·r_j in units of σ², r = y·tanh(yμ/σ²) − μ, where ratio = E[μ²]/σ².

    r, r² and r³ are functions of (g, μ), private and public part. With Hermite coefficients c_nl of
    such a function Mehler's formula gives E[f_i·f_j] = Σ c_nl²·(q/k_private)^n·(p/k_public)^l.
    """
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    # Normalised Hermite polynomials by their recurrence, weights of the nodes included.
    H = np.empty((degree, nodes))
    H[0], H[1] = 1, x
    for n in range(1, degree - 1):
        H[n + 1] = (x * H[n] - np.sqrt(n) * H[n - 1]) / np.sqrt(n + 1)
    H *= weights / weights.sum()
    g, mu = x[:, None], np.sqrt(ratio) * x[None, :]
    r = signed(mu + g, mu) - mu
    private = (np.arange(k_private + 1) / k_private)[:, None] ** np.arange(degree)
    public = (np.arange(k_public + 1) / max(k_public, 1))[:, None] ** np.arange(degree)
    first, second, third = (
        public @ ((H @ r**power @ H.T) ** 2).T @ private.T for power in (1, 2, 3)
    )
    variance = np.maximum(second - first**2, 1e-12)
    sd, skew = np.sqrt(variance), (third - 3 * first * second + 2 * first**3) / variance**1.5
    return Levels(first, sd, skew, sd, skew)


# --- Features ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KnownPublic:
    """The public part: sorted `supports` (m, k_public), and for the assisted feature the vectors.
    `variance` is σ², that of the private part; `ratio` is E[μ²]/σ²."""

    supports: NDArray[np.int32]
    vectors: Floats | None
    weight: float
    variance: float
    ratio: float


def public_part(
    encodings: Encodings, supports: NDArray[np.int64], vectors: Floats | None
) -> KnownPublic:
    """σ² from the scheme where the pixels' root mean square is known, else from what the public
    part leaves of E[y²]."""
    scheme = encodings.scheme
    ordered = np.ascontiguousarray(np.sort(supports, axis=1), dtype=np.int32)
    if vectors is None:
        return KnownPublic(ordered, None, scheme.public_weight, scheme.private_variance, 0.0)
    power = scheme.public_variance * mean_square(vectors)
    if encodings.pixel_rms is not None:
        variance = scheme.private_variance * encodings.pixel_rms**2
    else:
        variance = max(mean_square(encodings.values) - power, 1e-3 * power, 1e-30)
    return KnownPublic(ordered, vectors, scheme.public_weight, variance, power / variance)


def mean_square(vectors: Floats) -> float:
    """Of all numbers, in double precision, in blocks of 4 MiB."""
    total = sum(
        float(np.einsum("ij,ij->", block, block, dtype=np.float64))
        for _, block in row_blocks(vectors, 1 << 20)
    )
    return total / vectors.size


def statistic_levels(statistic: Statistic, scheme: Scheme, public: KnownPublic | None) -> Levels:
    if statistic == "folded":
        return folded_levels(scheme)
    if public is None or public.vectors is None:
        raise InputError(
            "statistic='assisted' without public vectors: pass public= and k_public of 1 or more"
        )
    return assisted_levels(scheme.k_private, scheme.k_public, public.ratio)


def pixel_order(d: int, screen: int) -> NDArray[np.intp]:
    """All pixels, `screen` evenly spaced ones first: images are smooth, so that a corner of them
    would not stand for the rest."""
    if screen >= d:
        return np.arange(d)
    first = np.arange(screen) * d // screen
    return np.concatenate([first, np.delete(np.arange(d), first)])


def feature_rows(
    values: Floats,
    statistic: Statistic,
    order: NDArray[np.intp],
    public: KnownPublic | None = None,
    start: int = 0,
) -> tuple[Floats, Floats]:
    """Features (rows, d) with pixels in `order`, and mean/rms of each row, which takes folded
    features back to magnitudes.

    `start` is the place of the first row among all encodings: it finds the supports. A row without
    contrast has zero features. Rows are divided by √d, so that products are averages.
    """
    values = np.asarray(values)
    out = np.empty(values.shape, np.float32)
    if statistic == "folded":
        offset = np.empty(len(values), np.float32)
        _folded_rows(values, order, out, offset)
        return out, offset
    assert public is not None
    assert public.vectors is not None
    scale = np.float32(1 / np.sqrt(public.variance * values.shape[1]))
    for at, rows in row_blocks(values, 1 << 18):
        y, mu = np.abs(rows), np.zeros(rows.shape, np.float32)
        for column in public.supports[start + at : start + at + len(rows)].T:
            mu += public.vectors[column]
        mu *= np.float32(public.weight)
        r = signed(y, mu, np.float32(public.variance))
        r -= mu
        r *= scale
        r[y.min(axis=1) == y.max(axis=1)] = 0
        out[at : at + len(rows)] = r[:, order]
    return out, np.empty(0, np.float32)


@njit(cache=True, nogil=True)
def _folded_rows(values, order, out, offset):  # type: ignore[no-untyped-def]
    rows, d = values.shape
    for i in range(rows):
        total, power = 0.0, 0.0
        for x in range(d):
            y = np.float64(abs(values[i, x]))
            total += y
            power += y * y
        mean, square = total / d, power / d
        offset[i] = mean / np.sqrt(square) if square > 0 else 0.0
        if square - mean * mean <= 1e-12 * square:
            out[i, :] = 0
            continue
        scale = np.float32(1 / np.sqrt(square * d))
        shift = np.float32(mean)
        for x in range(d):
            out[i, x] = (abs(values[i, order[x]]) - shift) * scale


# --- The likelihood of a pair --------------------------------------------------------------------


@lru_cache(maxsize=64)
def ratio_thresholds(scheme: Scheme, largest: float = 0.999) -> Array:
    """(k_public+1, k_private): the balanced threshold of the log-likelihood ratio of q+1 against q,
    per pixel; NaN from correlation `largest` on, where there is no density."""
    z = lattice(scheme)
    out = np.full((z.shape[0], z.shape[1] - 1), np.nan)
    for p, q in np.ndindex(*out.shape):
        low, high = float(z[p, q]), float(z[p, q + 1])
        if high < largest:
            (m0, s0), (m1, s1) = (_ratio_moments(low, high, truth) for truth in (low, high))
            out[p, q] = (m0 * s1 + m1 * s0) / (s0 + s1)
    return out


def _ratio_moments(low: float, high: float, truth: float) -> tuple[float, float]:
    """Mean and standard deviation of the ratio over one pixel, a and b divided by the root mean
    square of their rows, which adds −κ·(a² − 1)/2 to first order, κ the derivative of the mean when
    a is stretched."""

    def ratio(a: Array, b: Array) -> Array:
        return log_density(a, b, high) - log_density(a, b, low)

    a, b, w = polar_nodes(truth)
    value, step = ratio(a, b), 1e-4
    mean = float((w * value).sum())
    stretch = float((w * (ratio(a * (1 + step), b) - ratio(a * (1 - step), b))).sum()) / (2 * step)
    u = value - mean - stretch * (a * a + b * b - 2) / 2
    return mean, float(np.sqrt((w * u * u).sum()))


def log_density(a: Array, b: Array, z: float) -> Array:
    """Log density of (|a|, |b|) up to a term without z."""
    s = 1 - z * z
    cosh = log_2cosh(z * np.abs(a * b) / s) - np.log(2)
    return np.asarray(-0.5 * np.log(s) - (a * a + b * b) * (z * z / (2 * s)) + cosh)


@njit(cache=True, nogil=True)
def log_ratios(A, B, offset_a, offset_b, rows, columns, low, high):  # type: ignore[no-untyped-def]
    """Log-likelihood ratio, z = high against z = low, of the pairs (rows, columns) of folded
    features A and B; |a|/rms is feature·√d + offset. Logarithms are slow: 256 factors of at most 2
    are multiplied before one is taken."""
    d = A.shape[1]
    root = np.sqrt(d)
    out = np.empty(len(rows), np.float64)
    for t in range(len(rows)):
        i, j = rows[t], columns[t]
        s0, s1 = 1 - low[t] * low[t], 1 - high[t] * high[t]
        quadratic = high[t] * high[t] / (2 * s1) - low[t] * low[t] / (2 * s0)
        x0, x1 = low[t] / s0, high[t] / s1
        total = -0.5 * d * (np.log(s1) - np.log(s0))
        for start in range(0, d, 256):
            above, below = 1.0, 1.0
            for x in range(start, min(start + 256, d)):
                a = A[i, x] * root + offset_a[i]
                b = B[j, x] * root + offset_b[j]
                product = a * b
                total += (x1 - x0) * product - quadratic * (a * a + b * b)
                above *= 1 + np.exp(-2 * x1 * product)
                below *= 1 + np.exp(-2 * x0 * product)
            total += np.log(above) - np.log(below)
        out[t] = total
    return out
