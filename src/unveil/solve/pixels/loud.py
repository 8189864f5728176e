"""Every pixel under loud noise: y = |Σ x + ε| with ε of a fifth of the signal and more.

Relaxed reflections (`pixels.noisy`) look for a point at which all encodings hold. Under loud noise
there is none, and they wander. Here each pixel starts from an eigenvector, and then signs are
weighed by how likely they are:

  starts   W·x = z and y² = z² + noise, so that T(y) = (q − 1)·c/(1 + c·(q − 1)), q = y²/E[y²], c
           the share of E[y²] that is no noise, is large where z is. The leading eigenvector of
           Aᵀ·diag(T)·A, A = W(WᵀW)^(−½), points towards z (the preprocessing of Luo, Alghamdi and
           Lu, IEEE Trans. Signal Process. 2019). A second start is the leading eigenvector of
           WᵀTW off its diagonal, which errs at other pixels; the likelier of the two is kept
  steps    s ← y·tanh(y·μ/(τ² + v)),  x ← LS(s). μ is what the *other* encodings say of z: with h
           the leverage of a row, μ = (Wx − h·s)/(1 − h), and v = τ²·h/(1 − h) is how well they
           know it. With its own sign in μ an encoding would confirm itself
  peaks    single vectors that climbed a wrong peak are put right, and means taken in the end
           (`pixels.one_by_one`)
  noise    τ² ← E[(signed y − Wx)²], with the freedom that x uses up put back

What hidden signs cost: one value says y²/τ²·sech²(y·z/τ²) less about z than with its sign, so that
no estimate is nearer than 1/√information times least squares with all signs known. Cost: an
eigenvector of an n×n matrix for each pixel and start, and some tens of products n×m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.folded import expected_square, log_density, signed
from unveil.records import Progress
from unveil.solve.affine_rrr import Range, Weight
from unveil.solve.model import Members, Values
from unveil.solve.pixels.one_by_one import sweep
from unveil.solve.pixels.pixels import Block, solved_blocks

Floats = NDArray[np.float64]
BLOCK = 256
"""Pixels at a time, one thread each."""
TRIAL_STEPS, STEPS = 15, 30
"""Steps from each start, after which the likelier one shows, and from that one to the end."""
WARM = 1.3
"""The noise of the first steps, relative to what it is: signs that are not sure yet stay open a
little longer, and half as many pixels end in a wrong basin."""
SWEEPS = 4
"""Sweeps at most: after two all but one pixel in a hundred stay as they are."""
LARGEST_LEVERAGE = 0.9
"""A row that alone holds a vector has leverage 1: nothing else says anything of it. Held below, its
sign stays open, and no division fails."""
LEAST_SHARE = 0.05
"""The share of a pixel's power that is taken to be no noise at least: T must not turn its sign."""
LOWEST, HIGHEST = -5.0, 2.0
"""Bounds of T: of the first start, where y is next to nothing, and of the second, where one bright
encoding would outweigh all others."""
QUIETEST = 1e-3
"""The least noise that is assumed, in units of the rms of y: below, `pixels.noisy` is exact."""
NULL = 1e-9
"""Eigenvalues of WᵀW below this share of the largest are zero: they are counts of rows."""


@dataclass(frozen=True, eq=False)
class Loud:
    """x (n, d); nats (rows,): each row's log-likelihood by what the other rows say; noise: its
    standard deviation."""

    x: Floats
    nats: Floats
    noise: float


class Design:
    """What all pixels share: W (rows, n), least squares onto it, leverages, and W whitened."""

    def __init__(self, members: Members, n: int, weights: Weight = 1.0) -> None:
        target = Range(members, n, np.ones(len(members)), weights)
        self.members, self.weights = members, weights
        self.W = target.W
        self.C: Floats = target.pinv()
        dense = self.W.toarray().astype(np.float64)
        self.fit = np.asarray(self.C @ dense.T, dtype=np.float32)
        leverage = np.einsum("ij,ji->i", dense, self.C @ dense.T)
        self.h = np.minimum(leverage, LARGEST_LEVERAGE).astype(np.float32)[:, None]
        values, vectors = eigh(target.gram)
        inverse = np.where(values > NULL * values[-1], 1 / np.sqrt(np.maximum(values, NULL)), 0.0)
        self.root = (vectors * inverse) @ vectors.T
        self.dense = dense.astype(np.float32)
        self.white = np.asarray(dense @ self.root, dtype=np.float32)

    def others(self, x: Values, s: Values, noise: float) -> tuple[Values, Values]:
        """(mean, variance with that of the noise) of each encoding's sum by the other ones."""
        mean = (self.W @ x - self.h * s) / (1 - self.h)
        return mean, np.asarray(np.float32(noise**2) / (1 - self.h))


def solve_loud(
    y: Values,
    members: Members,
    n: int,
    noise: float,
    rng: np.random.Generator,
    *,
    weights: Weight = 1.0,
    fine: bool = True,
    progress: Progress | None = None,
) -> Loud:
    """The most likely x, y (rows, d) with `weights` of its members, one or (rows, k); `noise`: a
    guess at its standard deviation.

    fine: whether single vectors are put right and means taken, which most of the time goes into;
    subsets can be told without
    """
    d = y.shape[1]
    design = Design(members, n, weights)
    x, nats = np.zeros((n, d)), np.zeros((len(y), -(-d // BLOCK)))
    power = np.zeros(-(-d // BLOCK))
    floor = QUIETEST * float(np.sqrt(np.mean(np.square(y, dtype=np.float64))))
    noise = max(noise, floor)
    shared = y, design, noise, fine
    for pixels, found in solved_blocks(_solved, shared, d, rng, block=BLOCK, progress=progress):
        block = pixels.start // BLOCK
        x[:, pixels], nats[:, block], power[block] = found
    return Loud(x, nats.sum(axis=1), max(float(np.sqrt(power.sum() / d)), floor))


def _solved(
    shared: tuple[Values, Design, float, bool], block: Block
) -> tuple[Values, Floats, float]:
    """The likelier of both starts at each of these pixels, what each row says there, and the noise
    that is left."""
    y, design, noise, fine = shared
    pixels, _ = block
    part = np.ascontiguousarray(y[:, pixels])
    # 1. Both starts, a few steps each.
    best = np.full(part.shape[1], -np.inf)
    x = np.zeros((len(design.C), part.shape[1]), np.float32)
    for start in _starts(part, design, noise):
        found, s = _steps(part, design, start, WARM * noise, TRIAL_STEPS)
        likely = log_density(part, *design.others(found, s, noise)).sum(axis=0, dtype=np.float64)
        better = likely > best
        x[:, better], best[better] = found[:, better], likely[better]
    # 2. The likelier one to the end; single vectors on a wrong peak are put right on the way.
    found, _ = _steps(part, design, x, noise, STEPS)
    if fine:
        found = _swept(part, design, found, noise, mean=False)
    found, s = _steps(part, design, found, noise, TRIAL_STEPS)
    # 3. What the others say of each encoding, and the noise that is left.
    nats = log_density(part, *design.others(found, s, noise)).sum(axis=1, dtype=float)
    # Signed by what the fit itself says.
    rest = expected_square(part, design.W @ found, np.float32(noise**2))
    left = np.mean(rest, axis=0, dtype=np.float64)
    power = float(left.sum()) / max(1 - float(design.h.mean()), 1 - LARGEST_LEVERAGE)
    # 4. Means instead of the highest values.
    if fine:
        found = _swept(part, design, found, noise, mean=True)
    return found, np.asarray(nats), power


def _swept(y: Values, design: Design, x: Values, noise: float, *, mean: bool) -> Values:
    """x after sweeps over all vectors; pixels at which one went to another peak are swept again,
    since those before it were judged with it on the wrong one."""
    out = x.copy()
    todo = np.arange(y.shape[1])
    for _ in range(SWEEPS):
        before = np.ascontiguousarray(out[:, todo])
        part = np.ascontiguousarray(y[:, todo])
        after = sweep(part, design.members, before, noise, mean=mean, weights=design.weights)
        out[:, todo] = after
        todo = todo[np.abs(after - before).max(axis=0) > noise]
        if not len(todo):
            break
    return out


def _steps(y: Values, design: Design, x: Values, noise: float, steps: int) -> tuple[Values, Values]:
    """x and the likely signed encodings, each sign weighed by what the others say."""
    s = np.zeros_like(y)
    for step in range(steps):
        mean, variance = design.others(x, s if step else np.asarray(design.W @ x), noise)
        s = signed(y, mean, variance)
        x = design.fit @ s
    return x, s


def _starts(y: Values, design: Design, noise: float) -> tuple[Values, Values]:
    """Two guesses at x (n, pixels), from eigenvectors."""
    power = np.maximum(np.mean(y * y, axis=0), np.float32(1e-30))
    q = y * y / power
    c = np.maximum(1 - noise**2 / power, LEAST_SHARE).astype(np.float32)
    first = np.maximum((q - 1) * c / np.maximum(1 + c * (q - 1), -c / LOWEST), LOWEST)
    second = np.minimum(q - 1, HIGHEST)
    n, d = design.dense.shape[1], y.shape[1]
    whitened, plain = np.empty((n, d)), np.empty((n, d))
    for p in range(d):
        whitened[:, p] = design.root @ _leading((design.white.T * first[:, p]) @ design.white)
        pairs = (design.dense.T * second[:, p]) @ design.dense
        np.fill_diagonal(pairs, 0)
        plain[:, p] = _leading(pairs)
    # As large as the encodings are, without their noise.
    size = np.sqrt(c * power)
    out = []
    for x in (whitened, plain):
        image = np.sqrt(np.mean(np.square(design.W @ x), axis=0))
        out.append((x * (size / np.maximum(image, 1e-30))).astype(np.float32))
    return out[0], out[1]


def _leading(matrix: Values) -> Floats:
    last = len(matrix) - 1
    vectors = eigh(matrix, subset_by_index=[last, last], check_finite=False)[1]
    # Where many values are equal to rounding, LAPACK may find none at the place asked for.
    return np.asarray(vectors[:, 0] if vectors.size else eigh(matrix)[1][:, last])
