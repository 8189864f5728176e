"""What the pixels of the public vectors are like, measured: is the Gaussian model of `folded`
right, and what instead?

`folded` takes all vectors for independent standard Gaussian pixels. Smooth, heavy-tailed, discrete
or non-negative vectors are not, and then its margins are no log odds. Here are the tests for that
(`departures`, in words), and the law that takes the place of the plain one (`measure_law`): every
pixel has a mean, a deviation, and a correlation with one other pixel, the neighbours being a tree
(Chow and Liu 1968: of all trees the maximum spanning tree of |correlation| is the likeliest).

The private vectors are taken to be alike up to one factor, which the mean of y² tells. Whether they
are is not believed but
asked: the search compares the likelihood of this law with that of the plain one
(`supports.correlated.tree_search`).

Means and deviations of single pixels are shrunk towards those of all pixels by how well two halves
of the vectors agree on them. Cost n·d² for at most 2000 vectors; pixels beyond 4096 are not linked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from unveil.supports.folded.likelihood import Floats, Indices
from unveil.supports.folded.survey import Public

SAMPLE = 2000
"""Vectors looked at, evenly spaced: a correlation is then right to 0.02, and d² of them cost a few
seconds."""
LINKED = 4096
"""Most pixels with a tree: the correlations of more would not fit beside the vectors."""
CHECKED = 500
"""Vectors and pixels looked at by the tests, evenly spaced: a hundred thousand pairs show a
correlation of 0.01."""
SIGMAS = 6.0
"""Standard errors at which a test speaks: for Gaussian vectors one list in a hundred million."""
KURTOSIS, MEAN = 0.3, 0.02
"""Excess kurtosis, and squared mean per mean square, up to which margins stay right; large lists
show far less."""
FLOOR = 1e-4
"""Least conditional variance of a pixel, per mean variance: a pixel that never varies must not
decide alone."""


@dataclass(frozen=True, eq=False)
class Law:
    """Mean and deviation of every pixel; correlation with its parent (0: none) in an order that
    puts parents first.

    `parent` holds positions in `order`, −1 for roots.
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    order: Indices
    parent: Indices
    correlation: NDArray[np.float64]

    @property
    def linked(self) -> float:
        """Share of pixels with a parent."""
        return float((self.correlation != 0).mean())


class Noise(NamedTuple):
    """What is added to the known members, pixels in the order of the law: mean, slope on the
    parent, ½/variance, constant."""

    order: Indices
    parent: Indices
    slope: Floats
    half_precision: Floats
    mean: Floats
    constant: float

    @classmethod
    def of(cls, law: Law, size: float, square: float) -> Noise:
        """The sum of independent vectors of the law whose weights add up to `size`, their squares
        to `square`."""
        deviation = np.sqrt(square) * law.deviation[law.order]
        least = FLOOR * float((deviation**2).mean())
        variance = np.maximum(deviation**2 * (1 - law.correlation**2), least)
        above = np.where(law.parent >= 0, deviation[law.parent], 1.0)
        slope = np.where(
            law.correlation != 0, law.correlation * deviation / np.maximum(above, 1e-30), 0.0
        )
        return cls(
            law.order,
            law.parent,
            slope.astype(np.float32),
            (0.5 / variance).astype(np.float32),
            (size * law.mean[law.order]).astype(np.float32),
            float(-0.5 * np.log(2 * np.pi * variance).sum()),
        )


def departures(public: Public) -> str:
    """In words: how the public vectors differ from independent Gaussian pixels of mean 0. Empty:
    they do not."""
    X = _sample(public, CHECKED, CHECKED)
    n, d = X.shape
    power = float((X**2).mean()) or 1.0
    found = []
    # Single pixels of single vectors are what is independent, under the model.
    kurtosis = float((X**4).mean()) / power**2 - 3
    if abs(kurtosis) > KURTOSIS + SIGMAS * np.sqrt(96 / (n * d)):
        kind = "heavy-tailed" if kurtosis > 0 else "discrete or bounded"
        found.append(f"values are {kind} (excess kurtosis {kurtosis:.1f})")
    if float(X.mean()) ** 2 / power > MEAN + SIGMAS**2 / (n * d):
        found.append(f"values have a mean ({X.mean() / np.sqrt(power):.2f} of their size)")
    profile = (X**2).mean(axis=0) / power
    # The mean of n squares has variance 2/n, that of d squared deviations about 8(1 + 6/n)/(d n²).
    if n > 1 and float(((profile - 1) ** 2).mean()) > 2 / n + SIGMAS * np.sqrt(
        8 * (1 + 6 / n) / d
    ) / n * (3 + kurtosis):
        found.append("some pixels are brighter than others")
    square = _mean_square_correlation(X)
    if n > 2 and d > 1 and square > 1 / n + SIGMAS * 2 / (n * np.sqrt(d * (d - 1))):
        found.append(f"pixels are correlated ({np.sqrt(square - 1 / n):.2f} rms)")
    return (
        "public vectors are not independent Gaussian pixels (" + ", ".join(found) + ")"
        if found
        else ""
    )


def plain_law(public: Public) -> Law:
    """Independent pixels of one deviation, mean 0: the model of `folded`."""
    d = public.vectors.shape[1]
    none = np.full(d, -1, np.int64)
    return Law(np.zeros(d), np.full(d, np.sqrt(public.power)), np.arange(d), none, np.zeros(d))


def measure_law(public: Public) -> Law:
    """Mean, deviation and tree of the public vectors, each as far as the vectors bear it out."""
    # 1. Means: one of all pixels where it is more than chance, and what halves of the vectors agree
    # on beyond.
    X = _sample(public, SAMPLE, public.vectors.shape[1])
    n, d = X.shape
    halves = (X[::2], X[1::2]) if n > 3 else (X, np.zeros((1, d)))
    common = float(X.mean())
    error = float(X.mean(axis=1).std()) / np.sqrt(n)
    trust = _agreement(halves[0].mean(axis=0), halves[1].mean(axis=0))
    mean = common * (abs(common) > 5 * error) + trust * (X.mean(axis=0) - common)
    # 2. Deviations, on a logarithmic scale.
    Z = X - mean
    power = float((Z**2).mean()) or 1.0
    logs = np.log((Z**2).mean(axis=0) + 1e-6 * power)
    parts = [np.log(h.var(axis=0) + 1e-6 * power) for h in halves]
    variance = np.exp(logs.mean() + _agreement(*parts) * (logs - logs.mean()))
    variance *= power / variance.mean()
    # 3. The tree, with links that stand out among all d²/2 pairs.
    order, parent = np.arange(d), np.full(d, -1, np.int64)
    correlation = np.zeros(d)
    if 1 < d <= LINKED and n > 3:
        Z = (X - X.mean(axis=0)).astype(np.float32)
        Z /= np.maximum(np.linalg.norm(Z, axis=0), np.float32(1e-12))
        order, parent, correlation = _spanning_tree(Z.T @ Z)
        correlation[np.abs(correlation) < np.sqrt(4 * np.log(d) / n)] = 0
        correlation = np.clip(correlation, -0.9999, 0.9999)
    return Law(mean, np.sqrt(variance), order, parent, correlation)


def _sample(public: Public, vectors: int, pixels: int) -> NDArray[np.float64]:
    usable = np.flatnonzero(public.usable)
    some = usable[_evenly(len(usable), vectors)]
    return np.asarray(public.vectors[some][:, _evenly(public.vectors.shape[1], pixels)], np.float64)


def _evenly(count: int, most: int) -> Indices:
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _agreement(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """How much of a profile over pixels is real, 0 to 1, from two halves (Spearman and Brown); 0
    within chance."""
    a, b = first - first.mean(), second - second.mean()
    r = float(a @ b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-30)
    return 2 * r / (1 + r) if r > 3 / np.sqrt(len(a)) else 0.0


def _mean_square_correlation(X: NDArray[np.float64]) -> float:
    """Of two pixels over the vectors, about 0; 1/n by chance."""
    size = np.linalg.norm(X, axis=0)
    unit = X[:, size > 0] / size[size > 0]
    d = unit.shape[1]
    # Of the two Gram matrices the smaller one: their squares have the same sum.
    gram = unit.T @ unit if d <= len(unit) else unit @ unit.T
    return float(((gram**2).sum() - d) / max(1, d * (d - 1)))


@njit(cache=True, nogil=True)
def _spanning_tree(R):  # type: ignore[no-untyped-def]
    """Prim's algorithm on |R| (d, d): order, parents as positions in it, correlation with the
    parent in that order."""
    d = len(R)
    best = np.full(d, -1.0)
    above = np.full(d, -1)
    place = np.full(d, -1)
    order = np.empty(d, np.int64)
    parent = np.empty(d, np.int64)
    correlation = np.zeros(d)
    j = 0
    for step in range(d):
        order[step] = j
        place[j] = step
        parent[step] = place[above[j]] if step else -1
        correlation[step] = R[j, above[j]] if step else 0.0
        following = -1
        for i in range(d):
            if place[i] < 0:
                if abs(R[j, i]) > best[i]:
                    best[i] = abs(R[j, i])
                    above[i] = j
                if following < 0 or best[i] > best[following]:
                    following = i
        j = following
    return order, parent, correlation
