"""Signs of encodings as smooth fields, the images under them, and regions with the wrong sign.

    y = |z|,   z = Σ λ_j x_j + o + rest

Given weights A, images x and what is known of the public part (o), z is Gaussian with mean
M = A x + o and the covariance of natural images (`model.Prior`) times the energy τ² of the rest.
Its sign changes only where y passes near zero, and what is known of it in one place carries far. In
the components of the prior (variances w, basis U), finer detail as white noise of variance ε·τ²,
the mean field of the signs obeys

    E = y·tanh( y·(M + H(E − M) − diag(H)·E) / (ε·τ²) ),     H = U diag(w/(w + ε)) Uᵀ

(H is the Wiener filter's guess of the rest; a pixel's own vote is left out). ε falls step by step,
from coarse and soft to fine and sure; after every step images are fitted to the signed encodings,

    (Aᵀ τ⁻² A + 1) x = Aᵀ τ⁻² (E − o) + towards.

Annealing can leave a region of one image inverted: where the image is strong, the signs of
encodings follow it, and all fits. But the image also meets others whose signs are right, and there
magnitudes tell. With o what is known of an encoding besides λx, and v the variance of all else,

    log p(y | o + λx) − log p(y | o − λx) = log cosh(y(o + λx)/v) − log cosh(y(o − λx)/v) − 2oλx/v

summed over the encodings of x and over neighbouring pixels, which turn together (`turn_regions`).
Both cost O(m·d·r) per step at most; blocks of encodings run on all cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.ndimage import gaussian_filter

from unveil.engine.blocks import run_blocks, where, worker_count
from unveil.images.model import Copies, Floats, Prior


def row_blocks(m: int, size: int = 256) -> list[slice]:
    """Rows in blocks whose products stay in the processor's cache."""
    return [slice(start, min(start + size, m)) for start in range(0, m, size)]


@dataclass(frozen=True, eq=False)
class Mixture:
    """What is believed of encodings: expected weights A (m, count·n), the energy τ² (m,) of what is
    not known, the weight `rest` (m,) of the public part beside its mean image (d,), and what is
    known of that part besides (m, d)."""

    A: sparse.csr_array
    noise: Floats
    rest: Floats
    mean: Floats
    known: Floats | None = None

    def offset(self, rows: slice) -> Floats:
        """(rows, d): the public part to expect."""
        mean = self.rest[rows, None] * self.mean
        return mean if self.known is None else mean + self.known[rows]

    def expect(self, rows: slice, images: Floats, copies: Copies) -> Floats:
        """(rows, d): M."""
        return copies.mix(self.A[rows], images) + self.offset(rows)

    def at(self, rows: NDArray[np.bool_]) -> Mixture:
        """Of some encodings."""
        known = None if self.known is None else self.known[rows]
        A = sparse.csr_array(self.A[rows])
        return Mixture(A, self.noise[rows], self.rest[rows], self.mean, known)


def anneal(
    Y: Floats,
    mixture: Mixture,
    images: Floats,
    prior: Prior,
    copies: Copies,
    epsilons: NDArray[np.float64],
    towards: Floats,
    *,
    sweeps: int = 4,
    speaks: float = 2.0,
) -> tuple[Floats, Floats]:
    """Images (n, d) and signed encodings (m, d), from images to start with.

    epsilons: falling values of ε, for photographs in [−1, 1].
    towards: the image (d,) that fits are drawn to, by the weight of one encoding.
    sweeps: sweeps of the mean field at each ε.
    speaks: components take part whose variance is at least so many ε. With all of them images are
        the same and take three times as long.
    """
    E = np.empty_like(Y)
    fit = Fit(mixture, copies)
    blocks, workers = row_blocks(len(Y)), worker_count(where().workers)
    for step, epsilon in enumerate((epsilons * prior.unit).astype(np.float32)):
        # 1. The components that speak, their gains, and each pixel's own vote.
        r = max(8, int(np.searchsorted(-prior.variances, -speaks * epsilon)))
        U = np.ascontiguousarray(prior.basis[:, :r])
        gain = prior.variances[:r] / (prior.variances[:r] + epsilon)
        own, back = (U * U) @ gain, np.ascontiguousarray((U * gain).T)

        def restore(
            rows: slice, step: int = step, epsilon: np.float32 = epsilon, images: Floats = images,
            U: Floats = U, back: Floats = back, own: Floats = own,
        ) -> None:  # fmt: skip
            # 2. Sweeps of the mean field over some encodings, in place.
            y, e, noise = Y[rows], E[rows], mixture.noise[rows, None]
            M = mixture.expect(rows, images, copies)
            if step == 0:
                e[:] = y * np.tanh(y * M / (noise * prior.pixel))
            scaled = y / (epsilon * noise)
            field, other = np.empty_like(y), np.empty_like(y)
            for _ in range(sweeps):
                np.matmul(np.subtract(e, M, out=other) @ U, back, out=field)
                field += M
                field -= np.multiply(own, e, out=other)
                field *= scaled
                np.multiply(y, np.tanh(field, out=field), out=e)

        run_blocks(restore, blocks, workers)
        # 3. Images, from all encodings.
        images = fit(E, images, towards)
    return images, E


class Fit:
    """Images from signed encodings: normal equations by conjugate gradients, preconditioned by
    those in which the copies of an image do not differ. With one copy that is the solution."""

    def __init__(self, mixture: Mixture, copies: Copies) -> None:
        self.mixture, self.copies = mixture, copies
        A = mixture.A
        n = A.shape[1] // copies.count
        self.weighted = sparse.csr_array(A.multiply(1 / mixture.noise[:, None])).astype(np.float32)
        merge = sparse.csr_array(np.tile(np.eye(n, dtype=np.float32), (copies.count, 1)))
        normal = ((self.weighted @ merge).T @ (A @ merge)).toarray().astype(np.float64)
        self.inverse = np.linalg.inv(normal + np.eye(n)).astype(np.float32)
        # What offsets, and the padding of crops, add to the right-hand side.
        none = np.zeros((n, len(mixture.mean)), np.float32)
        self.constant = none.copy()
        for rows in row_blocks(A.shape[0]):
            part = mixture.offset(rows)
            if copies.reach:
                part = part + copies.mix(A[rows], none)
            self.constant += copies.gather(self.weighted[rows], part)

    def __call__(self, E: Floats, images: Floats, towards: Floats, *, steps: int = 4) -> Floats:
        """Images (n, d) after some steps from `images`."""
        b = self.copies.gather(self.weighted, E) - self.constant + towards
        if self.copies.count == 1:
            return np.asarray(self.inverse @ b)
        x = images.copy()
        left = b - self._normal(x)
        move = step = self.inverse @ left
        size = float(np.vdot(left, step))
        for _ in range(steps):
            if size <= 1e-9:
                break
            moved = self._normal(move)
            length = np.float32(size / float(np.vdot(move, moved)))
            x += length * move
            left -= length * moved
            step = self.inverse @ left
            before, size = size, float(np.vdot(left, step))
            move = step + np.float32(size / before) * move
        return x

    def _normal(self, x: Floats) -> Floats:
        mixed = self.copies.mix(self.mixture.A, x, linear=True)
        return self.copies.gather(self.weighted, mixed) + x

    def shares(self, rows: slice) -> Floats:
        """(rows, count·n): what each signed encoding adds to each image, about."""
        if self.copies.count == 1:
            return np.asarray(self.weighted[rows] @ self.inverse)
        each = np.tile(np.diag(self.inverse), self.copies.count)
        return np.asarray(self.weighted[rows].toarray() * each)


def half_signed(Y: Floats, E: Floats) -> Floats:
    """Half-way between soft signs, which shrink weights, and certain ones, which add noise."""
    return np.asarray(0.5 * (E + np.copysign(Y, E)))


def turn_regions(
    Y: Floats,
    mixture: Mixture,
    images: Floats,
    prior: Prior,
    copies: Copies,
    *,
    near: float = 1.5,
    sure: float = 30.0,
    least: float = 0.1,
) -> tuple[Floats, NDArray[np.float64]]:
    """Images (n, d) with the sign that their encodings ask for, pixel by pixel, and smaller where
    these hardly tell; (n,) the evidence for the sign of each image, by its energy and over that of
    the median image. Signs of encodings are not used: they were fitted to the images as they are.

    near: pixels around each that turn with it (a standard deviation).
    sure: evidence, in nats, that makes a sign certain.
    least: what is left of a pixel at least.
    """
    found = _sign_evidence(Y, mixture, images, prior, copies)
    maps = found.reshape(len(found), *copies.shape[:2], -1)
    around = gaussian_filter(maps.sum(axis=3), (0, near, near), mode="constant")
    around = np.broadcast_to(around[..., None], maps.shape).reshape(found.shape)
    around = around * np.float32(2 * np.pi * near**2)
    size = np.maximum(np.abs(np.tanh(around / np.float32(sure))), np.float32(least))
    precision = copies.of_images(mixture.A.multiply(mixture.A).T @ (1 / mixture.noise))
    share = found.sum(axis=1) / (precision * (images**2 / prior.pixel).sum(axis=1) + 1e-9)
    share = share / max(float(np.median(share)), 1e-9)
    return images * np.copysign(size, around), np.asarray(share, np.float64)


def _sign_evidence(
    Y: Floats,
    mixture: Mixture,
    images: Floats,
    prior: Prior,
    copies: Copies,
    *,
    faint: float = 0.03,
) -> Floats:
    """(n, d): how much likelier each pixel of each image is as it is than with the other sign;
    faint: weights below it tell nothing, and are left out."""
    X = copies.every(images)
    out = np.zeros_like(images)
    for rows in row_blocks(len(Y), 32):  # many temporaries, which fit in the cache
        expected = mixture.expect(rows, images, copies)
        weights = mixture.A[rows].tocoo()
        strong = weights.data > faint
        row, column, weight = weights.row[strong], weights.col[strong], weights.data[strong, None]
        v = mixture.noise[rows, None][row] * prior.pixel
        own = weight * X[column]
        tells = sign_odds(Y[rows][row] / v, expected[row] - own, own, v)
        each = sparse.csr_array(
            (np.ones(len(row), np.float32), (np.arange(len(row)), column)),
            shape=(len(row), len(X)),
        )
        out += copies.gather(each, tells)
    return out


def sign_odds(scaled: Floats, other: Floats, own: Floats, v: Floats) -> Floats:
    """How much likelier magnitudes (over v: scaled) are with `own` added to `other` than taken off,
    in nats."""
    plus, minus = np.abs(scaled * (other + own)), np.abs(scaled * (other - own))
    odds = plus - minus + np.log1p(np.exp(-2 * plus)) - np.log1p(np.exp(-2 * minus))
    return np.asarray(odds - 2 * other * own / v)
