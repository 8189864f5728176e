"""What each signed encoding mixes: private images and their weights, and as much of its public part
as other encodings or a list of candidates tell.

Once signs are known an encoding is linear. In whitened components of the prior the public rest is
white noise of energy τ²:

    e = (z − mean − known)·W,   x = (image − mean)·W,   e = Σ λ_j x_j + τ·noise

Private images. Every row is scored against all columns together, its own share in each image taken
out, so that what images have in common speaks for none of them. All k-subsets of its best
candidates are fitted, with bounds; expected weights are averages over subsets by likelihood,
matched to epochs (`memberships`).

Public part. An epoch also draws n public images, each in k_public of its rows. What private images
leave of its rows, R (n, components) whitened, is correlated between rows:

    N = R Rᵀ/components,  P = N⁻¹,  E[r_i | the others] = −Σ_{j≠i} P_ij r_j / P_ii,  variance 1/P_ii

so that the others tell most of the public part of each (`shared_part`), with no public image known.
Where the candidates for public images are known, those that stand out of R one by one are taken
out instead (`listed_part`): orthogonal matching pursuit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax

from unveil.encode.weights import possible_laws, sample_weights
from unveil.images.fields import Fit, Mixture, half_signed, row_blocks
from unveil.images.memberships import Epochs, match_subsets
from unveil.images.model import Copies, Floats, Prior
from unveil.scheme import Scheme


@dataclass(frozen=True, eq=False)
class WeightLaw:
    """The law of weights: a sorted sample of private ones, their largest and their mean, and the
    energy Σλ² of public ones over (Σλ)², zero where there are none."""

    sample: NDArray[np.float64]
    largest: float
    mean: float
    public: float

    @classmethod
    def of(cls, scheme: Scheme, rng: np.random.Generator, *, draws: int = 40_000) -> WeightLaw:
        """Of a scheme; draws: encodings whose weights are drawn."""
        weights = sample_weights(scheme, draws, rng)
        own, public = weights[:, : scheme.k_private], weights[:, scheme.k_private :]
        total = np.maximum(public.sum(axis=1), 1e-9)
        ratio = float(np.mean((public**2).sum(axis=1) / total**2)) if scheme.k_public else 0.0
        return cls(np.sort(own.ravel()), float(own.max()), float(own.mean()), ratio)


@dataclass(frozen=True, eq=False)
class Weighing:
    """Expected λ and λ² (m, count·n); columns of the best subset of each row (m, k) and their
    weights; misfit (m,): mean square of what is left, over τ²."""

    weights: sparse.csr_array
    squares: sparse.csr_array
    members: NDArray[np.int64]
    best: Floats
    misfit: Floats


def weigh(
    Y: Floats,
    E: Floats,
    images: Floats,
    mixture: Mixture,
    prior: Prior,
    copies: Copies,
    k: int,
    law: WeightLaw,
    epochs: Epochs | None,
    *,
    labels: tuple[Floats, Floats] | None = None,
    candidates: int = 8,
    temperature: float = 2.0,
    least: float = 0.01,
    sure: float = 50.0,
) -> Weighing:
    """Members and weights of signed encodings E (m, d) over copies of images (n, d).

    labels: those of rows (m, classes) and of images (n, classes).
    candidates: columns of which all k-subsets are fitted.
    temperature: log-likelihoods are divided by it, since components are not quite independent.
    least: the least weight of a member.
    sure: a label is as sure as so many components.
    """
    # 1. Columns in whitened components; what is common to all rows.
    m, n, W = len(Y), len(images), prior.whitener
    x = (copies.every(images) - prior.mean) @ W
    gram = (x @ x.T).astype(np.float64)
    theirs = None if labels is None else np.tile(labels[1], (copies.count, 1))
    full = gram if theirs is None else gram + sure**2 * (theirs @ theirs.T)
    expected = k / len(x) * (law.largest / 2) ** 2  # the variance of a weight: k of all are mixed
    ridge = float(np.median(mixture.noise)) / expected
    solver = np.linalg.inv(gram + ridge * np.eye(len(x))) if copies.count <= 2 else None
    fit = Fit(mixture, copies)
    number = min(max(candidates, k), len(x))
    subsets = list(combinations(range(number), k))
    chosen = np.empty((m, number), np.int64)
    odds, fits = np.empty((m, len(subsets))), np.empty((m, len(subsets), k), np.float32)
    e = np.empty((m, W.shape[1]), np.float32)
    for rows in row_blocks(m):
        # 2. Scores over all columns together. A label is one more mixture, a precise one.
        z = half_signed(Y[rows], E[rows]) - prior.mean
        e[rows] = (z if mixture.known is None else z - mixture.known[rows]) @ W
        size = np.einsum("ij,ij->i", e[rows], e[rows])
        products = e[rows] @ x.T - fit.shares(rows) * size[:, None]
        if solver is None:
            scores = _pursue(products, gram, n, law.largest)
        else:
            scores = products @ solver
        if labels is not None and theirs is not None:
            alike = labels[0][rows] @ theirs.T
            scores = scores - np.where(alike > 0, 0, 1e6)
            products = products + np.float32(sure**2) * alike
        # 3. Least squares on all k-subsets of the best candidates.
        best = np.argpartition(-scores, number - 1, axis=1)[:, :number]
        b = np.take_along_axis(products, best, axis=1).astype(np.float64)
        G = full[best[:, :, None], best[:, None, :]]
        chosen[rows] = best
        for s, subset in enumerate(subsets):
            part = list(subset)
            g, h = G[:, part][:, :, part], b[:, part]
            w = _bounded(g, h, least, law.largest, sums=not law.public)
            cost = np.einsum("ij,ijl,il->i", w, g, w) - 2 * np.einsum("ij,ij->i", w, h)
            fits[rows, s], odds[rows, s] = w, -0.5 / temperature * cost / mixture.noise[rows]
    # 4. Averages over subsets, each image with its rows of every epoch.
    if epochs is not None:
        odds = match_subsets(odds, chosen % n, subsets, n, epochs)
    p = softmax(odds, axis=1)
    weights = _over_columns(p, fits, chosen, subsets, len(x))
    top = p.argmax(axis=1)
    left = e - weights @ x
    misfit = np.einsum("ij,ij->i", left, left) / W.shape[1] / mixture.noise
    return Weighing(
        weights=weights,
        squares=_over_columns(p, fits**2, chosen, subsets, len(x)),
        members=np.take_along_axis(chosen, np.array(subsets)[top], axis=1),
        best=fits[np.arange(m), top],
        misfit=misfit.astype(np.float32),
    )


def _pursue(products: Floats, gram: NDArray[np.float64], n: int, largest: float) -> Floats:
    """(rows, columns): what the best copy of each image explains beyond the best image, which
    comes first; other copies nothing. With many copies all columns together say too little."""
    m, norms = len(products), np.diag(gram).astype(np.float32) + np.float32(1e-3)

    def best_copies(values: Floats) -> tuple[Floats, NDArray[np.int64]]:
        weight = np.clip(values / norms, 0, largest)
        gain = (weight * (2 * values - weight * norms)).reshape(m, -1, n)
        copy = gain.argmax(axis=1)
        return np.take_along_axis(gain, copy[:, None], axis=1)[:, 0], copy * n + np.arange(n)

    at = np.arange(m)
    gain, column = best_copies(products)
    image = gain.argmax(axis=1)
    first = column[at, image]
    weight = np.clip(products[at, first] / norms[first], 0, largest)
    gain, column = best_copies(products - weight[:, None] * gram[first].astype(np.float32))
    gain[at, image], column[at, image] = np.inf, first
    scores = np.full(products.shape, -np.inf, np.float32)
    np.put_along_axis(scores, column, gain, axis=1)
    return scores


def _over_columns(
    p: NDArray[Any],
    values: NDArray[Any],
    chosen: NDArray[np.int64],
    subsets: list[tuple[int, ...]],
    columns: int,
    *,
    faint: float = 1e-3,
) -> sparse.csr_array:
    """(m, columns): Σ over subsets of p (m, s) times values (m, s, k) of each member. What is below
    `faint` is dropped, which keeps the matrix sparse."""
    total = np.zeros(chosen.shape, np.float32)
    for s, subset in enumerate(subsets):
        total[:, list(subset)] += p[:, s, None] * values[:, s]
    row, place = np.nonzero(total >= faint)
    return sparse.csr_array((total[row, place], (row, chosen[row, place])), shape=(len(p), columns))


def _bounded(
    g: NDArray[np.float64], h: NDArray[np.float64], least: float, largest: float, *, sums: bool
) -> NDArray[np.float64]:
    """Least squares (m, k) of normal equations g w = h with weights between bounds; sums: they sum
    to one, as where there are no public images."""
    k = h.shape[1]
    g = g + 1e-6 * np.eye(k)
    free = np.linalg.solve(g, h[:, :, None])[:, :, 0]
    if sums:  # the free optimum, moved along g⁻¹1 until the sum is one
        along = np.linalg.solve(g, np.ones_like(h)[:, :, None])[:, :, 0]
        free = free - along * ((free.sum(axis=1) - 1) / along.sum(axis=1))[:, None]
        return np.asarray(np.clip(free, least, 1 - (k - 1) * least))
    out = np.asarray(np.clip(free, least, largest))
    for _ in range(2):  # where a bound holds, the others move
        for c in range(k):
            others = np.einsum("ij,ij->i", g[:, c], out) - g[:, c, c] * out[:, c]
            out[:, c] = np.clip((h[:, c] - others) / g[:, c, c], least, largest)
    return out


def shared_part(
    residual: Callable[[slice], Floats],
    m: int,
    prior: Prior,
    epochs: Epochs,
    copies: Copies,
    *,
    alone: float = 0.03,
    least: float = 0.005,
) -> tuple[Floats, Floats]:
    """(m, d): what other rows of its epoch tell of the public part of each row, beside its mean;
    (m,): the energy that leaves.

    residual(rows): what private images and the public mean leave of signed encodings.
    alone: share of N that is a row's own, since signs and weights have errors.
    least: the least energy left.
    """
    W = prior.whitener
    out, left = np.empty((m, len(W)), np.float32), np.empty(m, np.float32)
    for rows in epochs.slices():
        others = copies.both(residual(rows))
        r = others @ W
        N = (r @ r.T).astype(np.float64) / W.shape[1]
        N = (1 - alone) * N + alone * np.diag(np.diag(N) + 1e-9)
        P = np.linalg.inv(N)[: rows.stop - rows.start]
        tells = -P / np.diag(P)[:, None]
        np.fill_diagonal(tells, 0)
        out[rows] = tells.astype(np.float32) @ others
        left[rows] = np.maximum(1 / np.diag(P), least)
    return out, left


def listed_part(
    residual: Callable[[slice], Floats],
    m: int,
    prior: Prior,
    public: Floats,
    k_public: int,
    ratio: float,
    total: NDArray[np.float64],
    *,
    largest: float = 0.65,
    stands_out: float = 6.0,
    components: int = 512,
    least: float = 0.005,
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The same from a list of candidates (items, d), and which of them are in each row
    (m, k_public), −1 where none stood out.

    ratio: energy of public weights over their sum squared; total (m,): what they sum to.
    largest: the largest weight of one image.
    stands_out: standard deviations a candidate must reach. Noise over ten thousand reaches four.
    components: whitened components in which candidates are matched. Finer detail is mostly noise.
    """
    W = np.ascontiguousarray(prior.whitener[:, :components])
    centred = public - prior.mean
    P = centred @ W
    direction = (P / (np.linalg.norm(P, axis=1, keepdims=True) + np.float32(1e-9))).T.copy()
    out, left = np.empty((m, len(prior.mean)), np.float32), np.empty(m, np.float32)
    indices = np.full((m, k_public), -1, np.int64)
    for rows in row_blocks(m):
        target = residual(rows) @ W
        rest, at = target.copy(), np.arange(len(target))
        chosen, active = indices[rows], np.ones(len(target), bool)
        weights = np.zeros(chosen.shape)
        for step in range(k_public):
            # The candidate most alike to what is left; then all weights are fitted again.
            scores = rest @ direction
            for earlier in chosen.T[:step]:
                scores[at[earlier >= 0], earlier[earlier >= 0]] = -np.inf
            best = scores.argmax(axis=1)
            spread = np.sqrt(np.mean(rest**2, axis=1)) + 1e-12
            active &= scores[at, best] > stands_out * spread
            if not active.any():
                break
            chosen[active, step] = best[active]
            basis = np.where((chosen >= 0)[:, :, None], P[np.maximum(chosen, 0)], 0)
            gram = np.einsum("ijr,ilr->ijl", basis, basis) + 1e-3 * np.eye(k_public)
            along = np.einsum("ijr,ir->ij", basis, target)
            weights = np.linalg.solve(gram, along[:, :, None])[:, :, 0]
            weights = np.where(chosen >= 0, np.clip(weights, 0, largest), 0)
            rest = target - np.einsum("ij,ijr->ir", weights, basis)
        # Together no more than public images weigh.
        weights /= np.maximum(weights.sum(axis=1) / np.maximum(total[rows], 1e-6), 1)[:, None]
        found = np.zeros((len(target), len(prior.mean)), np.float32)
        for slot in range(k_public):
            found += (
                weights[:, slot, None].astype(np.float32) * centred[np.maximum(chosen[:, slot], 0)]
            )
        unknown = np.maximum(total[rows] - weights.sum(axis=1), 0)
        out[rows], left[rows] = found, np.maximum(unknown**2 * ratio, least)
    return out, left, indices


def likeliest_law(
    weights: Floats,
    misfit: Floats,
    scheme: Scheme,
    rng: np.random.Generator,
    *,
    draws: int = 20_000,
) -> Scheme:
    """The scheme with the law that weights (m, k_private) as found follow best up to a scale, which
    images share with them; rows that fit badly are not asked. Laws are compared by the quantiles of
    weights over the largest of their row, and by the spread of their sum."""

    def shape(w: NDArray[Any]) -> NDArray[np.float64]:
        w = np.sort(w.astype(np.float64), axis=1)
        total, shares = w.sum(axis=1), w[:, :-1] / np.maximum(w[:, -1:], 1e-9)
        at = np.linspace(0.02, 0.98, 49)
        quantiles = np.quantile(shares, at) if shares.size else np.zeros(len(at))
        return np.append(quantiles / len(at), total.std() / max(total.mean(), 1e-9))

    found = shape(weights[misfit <= 1.5 * np.median(misfit)])

    def distance(law: Scheme) -> float:
        drawn = sample_weights(law, draws, rng)[:, : scheme.k_private]
        # Rounded: laws that cannot be told apart must not be chosen by the noise of draws.
        return round(float(np.abs(found - shape(drawn)).sum()), 2)

    return min(possible_laws(scheme), key=distance)
