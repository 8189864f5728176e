"""Signs of encodings of natural images, field by field, and the private images under them.

    y = |z|,   z = Σ λ_j x_j + public part

Given weights and images, z is Gaussian: mean M = Σ λ_j x_j + (1 − Σ λ_j)·mean image, and the
covariance of natural images, scaled by the energy τ² of the public weights. Pixels are far from
independent: z changes sign only where y passes near zero, and what is known of the sign in one
place carries far. In the components of the prior (variances w_r, `images.prior`), with all finer
detail as independent noise of variance ε·τ², the mean field of the signs obeys

    E = y·tanh( y·(M + H(E − M) − diag(H)·E) / (ε·τ²) ),     H = Σ_r w_r/(w_r + ε)·u_r u_rᵀ

(the Wiener filter's guess of the public part, the pixel's own vote left out). Large ε: only coarse
components speak, signs stay soft; ε falls step by step, and after every step the images are fitted
to the signed encodings by weighted least squares towards the prior. That annealing is what counts:
at a fixed small ε whole regions freeze with the wrong sign, and with independent pixels (H = 0) a
tenth of the energy has the wrong sign even when all else is known.

Every step is two thin products per block of encodings, O(m·d·r); blocks run on all cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.gram.sparse_rows import gather_rows, mix_rows
from unveil.images.prior import VARIANCE, ImagePrior
from unveil.parallel import run_blocks, where, worker_count
from unveil.records import Progress

if TYPE_CHECKING:
    from unveil.images.cropping import Cropping

BLOCK, BLOCKS = 256, 4
"""Encodings treated at once: products stay matrix products, and blocks fit the cache; and blocks
one after the other, by one core, in the same memory."""
FEWEST = 8
"""Components that speak in any case: the coarsest ones of an image."""
REST = (0.05, 0.75)
"""Bounds of the weight that is left for public images, whatever private ones are believed to weigh:
expected weights are noisy, and the released encoder leaves at least a little."""
SPEAKS = 2.0
"""Components speak at ε when their variance exceeds this multiple of it. With all of them images
are the same and take three times as long."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Mixture:
    """What is believed of the weights: expected λ (m, n), and the energy τ² (m,) of all that is not
    in them. raised (m,): times what it would be, had encodings not fitted badly before."""

    weights: sparse.csr_array
    noise: Floats
    raised: Floats | None = None


def anneal(
    Y: Floats,
    mixture: Mixture,
    images: Floats,
    prior: ImagePrior,
    schedule: NDArray[np.float64],
    *,
    inner: int = 4,
    signed: Floats | None = None,
    offsets: Floats | None = None,
    towards: Floats | None = None,
    cropping: Cropping | None = None,
    progress: Progress | None = None,
) -> tuple[Floats, Floats]:
    """Images (n, d) and signed encodings E (m, d), from images to start with, for ε falling along
    `schedule`.

    signed: E to start from, and to write to; offsets (m, d): the mean of the public part, where it
    is better known than (1 − Σ λ)·mean image; towards (d,): the mean of private images, where it is
    not the prior's; cropping: weights are over copies of images (`images.cropping`)
    """
    E = np.empty_like(Y) if signed is None else signed
    rest = 1 - np.asarray(mixture.weights.sum(axis=1)).ravel().astype(np.float32)
    blocks = _in_turn(len(Y))
    workers = worker_count(where().workers)
    solver = cropping.fit(mixture) if cropping else fit_to_signed(mixture, len(images))
    for step, epsilon in enumerate(schedule * min(1.0, float(prior.pixel.mean()) / VARIANCE)):
        # 1. The components that speak at this ε, their gains, and each pixel's own vote.
        speaking = max(FEWEST, int(np.searchsorted(-prior.variances, -SPEAKS * epsilon)))
        U = np.ascontiguousarray(prior.basis[:, :speaking])
        gain = (prior.variances[:speaking] / (prior.variances[:speaking] + epsilon)).astype(
            np.float32
        )
        own, back = (U * U) @ gain, np.ascontiguousarray((U * gain).T)
        first = step == 0 and signed is None

        def restore(
            several: list[slice], images: Floats = images, U: Floats = U, back: Floats = back,
            own: Floats = own, epsilon: float = float(epsilon), first: bool = first,
        ) -> None:  # fmt: skip
            # 2. Sweeps of the mean field over some encodings, in place: new memory takes longer
            #    than what is done with it.
            memory = np.empty((4, BLOCK, Y.shape[1]), np.float32)
            for rows in several:
                y, e, noise = Y[rows], E[rows], mixture.noise[rows, None]
                mean, scaled, field, spare = memory[:, : len(y)]
                if cropping:
                    mean[:] = cropping.mixed(mixture.weights[rows], images)
                else:
                    mix_rows(mixture.weights, rows, images, mean)
                np.multiply(rest[rows, None], prior.mean, out=spare)
                mean += spare if offsets is None else offsets[rows]
                if first:
                    np.multiply(y, mean, out=field)
                    field /= np.multiply(noise, prior.pixel, out=spare)
                    np.multiply(y, np.tanh(field, out=field), out=e)
                np.multiply(y, 1 / (np.float32(epsilon) * noise), out=scaled)
                for _ in range(inner):
                    np.subtract(e, mean, out=spare)
                    np.matmul(spare @ U, back, out=field)
                    field += mean
                    field -= np.multiply(own, e, out=spare)
                    field *= scaled
                    np.multiply(y, np.tanh(field, out=field), out=e)

        run_blocks(restore, blocks, workers)
        # 3. Images, from all encodings.
        images = solver(E, rest, prior.mean, offsets, towards, images)
        if progress:
            progress("signs", step + 1, len(schedule))
    return images, E


def _in_turn(m: int) -> list[list[slice]]:
    """Blocks of encodings, by the core that treats them one after the other."""
    blocks = [slice(start, start + BLOCK) for start in range(0, m, BLOCK)]
    return [blocks[start : start + BLOCKS] for start in range(0, len(blocks), BLOCKS)]


def fit_to_signed(mixture: Mixture, n: int) -> FitToSigned:
    """The weighted least-squares fit of n images to signed encodings, towards the prior mean by the
    weight of one encoding."""
    A = mixture.weights
    weighted = sparse.csr_array(A.multiply(1 / mixture.noise[:, None])).astype(np.float32)
    normal = (weighted.T @ A).toarray().astype(np.float64) + np.eye(n)
    return FitToSigned(weighted, np.linalg.inv(normal).astype(np.float32))


@dataclass(frozen=True, eq=False)
class FitToSigned:
    """A/τ² (m, n), and the inverse of the normal equations (n, n): images are linear in E."""

    weighted: sparse.csr_array
    inverse: Floats

    def __call__(
        self,
        E: Floats,
        rest: Floats,
        mean: Floats,
        offsets: Floats | None,
        towards: Floats | None = None,
        images: Floats | None = None,
    ) -> Floats:
        """Images (n, d); exact, so that it does not matter from which `images` they come."""
        total = gather_rows(self.weighted, E)
        total -= (
            (self.weighted.T @ rest)[:, None] * mean
            if offsets is None
            else gather_rows(self.weighted, offsets)
        )
        total += mean if towards is None else towards
        return np.asarray(self.inverse @ total, np.float32)

    def shares(self) -> Floats:
        """(n, m): what each signed encoding adds to each image."""
        return np.asarray((self.weighted @ self.inverse).T, np.float32)


def folded_fit(
    Y: Floats, mixture: Mixture, images: Floats, prior: ImagePrior, *, mean: bool, rounds: int
) -> Floats:
    """The same with independent pixels (H = 0): expectation–maximisation. `mean` False: with a
    public mean of zero, so that every pixel keeps its own sign."""
    rest = 1 - np.asarray(mixture.weights.sum(axis=1)).ravel().astype(np.float32)
    level = prior.mean if mean else np.zeros_like(prior.mean)
    solver = fit_to_signed(mixture, len(images))
    E = np.empty_like(Y)
    for _ in range(rounds):

        def restore(several: list[slice], images: Floats = images) -> None:
            memory = np.empty((2, BLOCK, Y.shape[1]), np.float32)
            for rows in several:
                y, noise = Y[rows], mixture.noise[rows, None]
                field, spare = memory[:, : len(y)]
                mix_rows(mixture.weights, rows, images, field)
                field += np.multiply(rest[rows, None], level, out=spare)
                field *= y
                field /= np.multiply(noise, prior.pixel, out=spare)
                np.multiply(y, np.tanh(field, out=field), out=E[rows])

        run_blocks(restore, _in_turn(len(Y)), worker_count(where().workers))
        images = solver(E, rest, level, None)
    return images
