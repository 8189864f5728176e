"""Private images out of encodings: who shares with whom, then signs, images and weights in turn.

y_i = |Σ_j λ_ij x_j + public part|,   k private images a row, weights by a known law

1  K ← products of windows, squared            who shares with whom (`similarity`)
2  λ, λ² ← independent components of K         memberships, softly (`memberships`)
3  x ← cross terms of y², neighbours' signs    images to start from (`start`), or the mean image, or
                                               what images have in common after a round: readings
                                               that fit nearly as well go on side by side, at first
4  repeat   E, x ← anneal                      signs as smooth fields, images (`fields`)
            public part ← rows of one epoch    or candidates, where they are known (`weigh`)
            λ ← least squares on E             members and weights (`weigh`)
            x ← its scale; its inverted regions turned back (`fields`)
5  E, x ← anneal, public part ← as in 4, some more times
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil.images.fields import Mixture, anneal, half_signed, turn_regions
from unveil.images.memberships import (
    Epochs,
    Labels,
    memberships,
    over_copies,
)
from unveil.images.model import Copies, Floats, Prior
from unveil.images.similarity import Similarity
from unveil.images.start import pixel_signs, polarity, start_images
from unveil.images.weigh import (
    Weighing,
    WeightLaw,
    likeliest_law,
    listed_part,
    shared_part,
    weigh,
)
from unveil.records import Progress
from unveil.scheme import Scheme


@dataclass(frozen=True)
class Schedule:
    """How rounds run. ε is the temperature of `fields.anneal`, energies are those of
    `fields.Mixture.noise`; rounds are counted from zero."""

    hots: tuple[float, ...] = (6.0, 6.0, 6.0, 4.0, 2.0, 2.0)
    """ε at which each round starts. Hotter, the sign of all is lost; colder, regions freeze."""
    cold: float = 0.2
    """ε at which a round ends."""
    finest: float = 0.1
    """ε at which the last ones end."""
    steps: int = 10
    """Values of ε in a round."""
    sweeps: int = 4
    """Mean-field sweeps at each ε."""
    ends: int = 3
    """Short annealings after the rounds, each with the public part found anew."""
    public_from: int = 3
    """Round from which on rows tell each other their public part, or candidates are looked for."""
    law_from: int = 2
    """Round after which an unknown law of weights is found out."""
    least: tuple[float, float] = (0.03, 0.03)
    """Least energy of what is not known, in the first round and in the last."""
    least_alone: tuple[float, float] = (0.03, 0.004)
    """The same without public images."""
    cross_terms: bool = True
    """Images may start from cross terms, not only from the mean image."""
    commons: int = 2
    """Rounds after which another reading starts from what images have in common, at most."""
    near: float = 1.1
    """Misfit over that of the best up to which a reading goes on next to it, one round longer."""
    regions: bool = True
    """Inverted regions are turned back."""
    scale: bool = True
    """The mean weight of every image is made that of the law."""


@dataclass(frozen=True, eq=False)
class Task:
    """What is given: magnitudes Y (m, d), the scheme and its law, what images look like (like the
    public ones, and the mean of like private ones), their copies, labels and candidates."""

    Y: Floats
    scheme: Scheme
    law: WeightLaw
    prior: Prior
    centre: Floats
    copies: Copies
    labels: Labels | None = None
    candidates: Floats | None = None

    @property
    def public(self) -> bool:
        return self.scheme.k_public > 0


@dataclass(frozen=True, eq=False)
class Found:
    """Images (n, d), signed encodings (m, d), what was believed when they were found, the weighing
    after the last round, the evidence for the sign of each image (n,), and the task, whose law may
    have been found out. listed: candidates in each row, where there are any."""

    images: Floats
    signed: Floats
    mixture: Mixture
    weighing: Weighing
    evidence: NDArray[np.float64]
    task: Task
    epochs: Epochs | None
    listed: NDArray[np.int64] | None


def alternate(
    task: Task,
    alike: Similarity,
    n: int | None,
    rng: np.random.Generator,
    *,
    schedule: Schedule | None = None,
    progress: Progress | None = None,
    watch: Callable[[str, Floats], None] | None = None,
) -> Found:
    """n images of a task, None: as many as stand out; `alike` is used up on the way.

    watch: called with the name of a stage and its images, for those who study the rounds.
    """
    plan = schedule or Schedule()
    Y, prior, copies = task.Y, task.prior, task.copies
    # 1. Who mixes whom.
    members = memberships(alike, n, task.scheme.k_private, task.law.sample, task.labels, rng)
    most = 0.85 if task.public else 1.0
    total = np.maximum(members.weights.sum(axis=1, keepdims=True), 1e-6)
    scale = np.minimum(1, most / total).astype(np.float32)
    A, S = members.weights * scale, members.squares * scale**2
    A, S = over_copies(A, S, alike.alignment, copies)
    state = State(task, members.epochs, A, S)
    # 2. Images to start from.
    n, centre = members.n, task.centre
    ends = plan.least if task.public else plan.least_alone
    leasts = np.geomspace(*ends, len(plan.hots))
    images = [np.repeat(centre[None], n, axis=0)] if centre.any() or copies.reach else []
    if plan.cross_terms and not copies.reach:
        crossed = start_images(Y, S, state.mixture(leasts[0]), prior, copies, rng)
        crossed[copies.of_images(A.sum(axis=0)) == 0] = centre
        images.append(crossed)
    starts = [Start(state, x, free=task.public and prior.known) for x in images]
    for turn in range(len(plan.hots)):
        # 3. Signs and images; what is known of the public part; members and weights. As long as the
        #    last of the readings fits nearly as well as the best, another one starts from what its
        #    images have in common: of images that are alike, some may have come out negative.
        readings = [_read(start, turn, leasts[turn], plan) for start in starts]
        youngest = readings[-1]
        readings.sort(key=lambda reading: reading.misfit)
        if watch:
            watch(f"round {turn}", readings[0].images)
        if progress:
            progress("rounds", turn + 1, len(plan.hots) + plan.ends)
        last = turn == len(plan.hots) - 1
        bound = readings[0].misfit * (plan.near if turn <= plan.commons else 1)
        readings = [reading for reading in readings if reading.misfit <= bound]
        for reading in readings:
            if turn == plan.law_from or last:
                reading.state.find_law(reading.weighing, rng)
            reading.settle(leasts[turn], plan)
        if not last:
            starts = [Start(reading.state, reading.turned) for reading in readings]
        if turn < plan.commons and task.public and not copies.reach and youngest in readings:
            common = _common(readings[0].images)
            starts.append(replace(starts[0], images=common, free=prior.known))
    best = readings[0]
    # 4. Once more with the last weights. Without public images, like ones tell the sign of all.
    state, x, E, mixture = best.state, best.images, best.signed, best.state.mixture(leasts[-1])
    for turn in range(plan.ends if task.public else 0):
        state.find_public(E, x)
        mixture = state.mixture(leasts[-1])
        epsilons = np.geomspace(2.0 if state.left is not None else 0.4, plan.finest, 5)
        x, E = anneal(Y, mixture, x, prior, copies, epsilons, centre, sweeps=plan.sweeps)
        if progress:
            progress("rounds", len(plan.hots) + turn + 1, len(plan.hots) + plan.ends)
        if state.left is None:
            break
    W = prior.whitener
    if not task.public and (x.sum(axis=0) @ W) @ (prior.mean @ W) < 0:
        x, E = -x, -E
    return Found(
        x, E, mixture, best.weighing, best.evidence, state.task, members.epochs, state.listed
    )


@dataclass(frozen=True, eq=False)
class Start:
    """What a round begins with: beliefs and images (n, d). free: it favours no sign of the whole,
    as long as images are not known well enough to tell it."""

    state: State
    images: Floats
    free: bool = False


@dataclass(eq=False)
class Reading:
    """What a round makes of encodings: beliefs, images (n, d), signed encodings (m, d), their
    weighing; later the evidence for the sign of each (n,), and images with the sign that their
    encodings ask for."""

    state: State
    images: Floats
    signed: Floats
    weighing: Weighing
    evidence: NDArray[np.float64]
    turned: Floats

    @property
    def misfit(self) -> float:
        return float(self.weighing.misfit.mean())

    def settle(self, least: float, plan: Schedule) -> None:
        """The scale of images, the signs of their regions and, without public images, of pixels."""
        task = self.state.task
        if not task.public:
            signs = pixel_signs(self.images, task.prior)
            self.images, self.signed = self.images * signs, self.signed * signs
        if plan.scale:
            self.images = self.state.rescale(self.images, self.weighing)
        self.turned = self.images
        if task.public and plan.regions:
            mixture = self.state.mixture(least)
            self.turned, self.evidence = turn_regions(
                task.Y, mixture, self.images, task.prior, task.copies
            )


def _common(images: Floats) -> Floats:
    """(n, d): what images have in common, whichever way round each is, for all of them."""
    signs = np.where(np.linalg.svd(images, full_matrices=False)[0][:, :1] < 0, -1, 1)
    return np.repeat(np.median(images * signs, axis=0)[None], len(images), axis=0)


def _read(start: Start, turn: int, least: float, plan: Schedule) -> Reading:
    """A round. Where no sign of the whole was favoured, the public mean tells it."""
    # 1. Signs and images.
    task, mixture, towards = start.state.task, start.state.mixture(least), start.state.task.centre
    cold = plan.finest if turn == len(plan.hots) - 1 else plan.cold
    epsilons = np.geomspace(plan.hots[turn], cold, plan.steps)
    if start.free:
        towards = np.zeros_like(towards)
        mixture = replace(mixture, mean=towards)
    x, E = anneal(
        task.Y, mixture, start.images, task.prior, task.copies, epsilons, towards,
        sweeps=plan.sweeps,
    )  # fmt: skip
    if start.free and polarity(task.Y, E, mixture, task.prior, task.copies) < 0:
        x, E = -x, -E
    # 2. What is known of the public part; members and weights.
    state = replace(start.state)
    if turn >= plan.public_from:
        state.find_public(E, x)
    weighing = state.weigh(E, x, least)
    return Reading(state, x, E, weighing, np.ones(len(x)), x)


@dataclass(eq=False)
class State:
    """What is believed of weights: expected λ and λ² (m, count·n); raised: times the energy that
    rows have which fitted badly; what is known of the public part (m, d), and the energy `left` of
    it (m,); candidates in each row."""

    task: Task
    epochs: Epochs | None
    A: sparse.csr_array
    S: sparse.csr_array
    raised: Floats | float = 1.0
    known: Floats | None = None
    left: Floats | None = None
    listed: NDArray[np.int64] | None = None

    def _rest(self) -> NDArray[np.float64]:
        """(m,): the weight of the public part. Labels say it exactly."""
        labels = self.task.labels
        total = self.A.sum(axis=1) if labels is None else labels.values.sum(axis=1)
        return np.asarray(1 - total, np.float64)

    def mixture(self, least: float) -> Mixture:
        """With the energy of all that is not known: the public part, and how unsure weights are. A
        row that fitted badly has more."""
        law, prior = self.task.law, self.task.prior
        if self.left is None:
            noise = np.maximum(np.clip(self._rest(), 0.05, 0.75) ** 2 * law.public, least)
        else:
            noise = self.left.astype(np.float64)
        noise = noise + np.maximum((self.S - self.A.multiply(self.A)).sum(axis=1), 0)
        if self.left is None and self.task.public:
            noise = noise * self.raised
        rest = (1 - self.A.sum(axis=1)).astype(np.float32)
        A = self.A.astype(np.float32)
        return Mixture(A, noise.astype(np.float32), rest, prior.mean, self.known)

    def find_public(self, E: Floats, images: Floats) -> None:
        """What candidates, or other rows of the epoch, tell of the public part of each row."""
        task = self.task
        if not task.public or (self.epochs is None and task.candidates is None):
            return
        rest = (1 - self.A.sum(axis=1)).astype(np.float32)

        def residual(rows: slice) -> Floats:
            z = half_signed(task.Y[rows], E[rows]) - rest[rows, None] * task.prior.mean
            return np.asarray(z - task.copies.mix(self.A[rows], images))

        m, prior, law = len(task.Y), task.prior, task.law
        if task.candidates is not None:
            total = np.clip(self._rest(), 0, 1)
            self.known, self.left, self.listed = listed_part(
                residual, m, prior, task.candidates, task.scheme.k_public, law.public, total
            )
        elif self.epochs is not None:
            self.known, self.left = shared_part(residual, m, prior, self.epochs, task.copies)

    def weigh(self, E: Floats, images: Floats, least: float) -> Weighing:
        """Members and weights anew."""
        task, n = self.task, len(images)
        labels = None
        if task.labels is not None:
            by_image = task.copies.merged(self.A).toarray()
            labels = task.labels.values, task.labels.classes_of(by_image)
        weighing = weigh(
            task.Y, E, images, self.mixture(least), task.prior, task.copies,
            min(task.scheme.k_private, n), task.law, self.epochs, labels=labels,
        )  # fmt: skip
        self.A, self.S = weighing.weights, weighing.squares
        misfit = weighing.misfit * self.raised  # in the unit of what the energy would be
        self.raised = np.clip(misfit / np.median(misfit), 0.5, 4)
        return weighing

    def find_law(self, weighing: Weighing, rng: np.random.Generator) -> None:
        """The law that the weights follow, where the scheme does not say."""
        task = self.task
        if task.scheme.weighting == "unknown":
            scheme = likeliest_law(weighing.best, weighing.misfit, task.scheme, rng)
            self.task = replace(task, law=WeightLaw.of(scheme, rng), scheme=scheme)

    def rescale(self, images: Floats, weighing: Weighing) -> Floats:
        """An image and its weights share a scale that rows fix badly: the mean of its weights
        is made that of the law. Labels fix it, and so does a sum of one."""
        if self.task.labels is not None or not self.task.public:
            return images
        n, mean = len(images), self.task.prior.mean
        name = weighing.members.ravel() % n
        count = np.bincount(name, minlength=n)
        total = np.bincount(name, weighing.best.ravel(), minlength=n)
        scale = np.clip(total / np.maximum(count, 1) / self.task.law.mean, 0.7, 1.4)
        scale = np.where(count > 3, scale, 1)
        by = sparse.diags_array(np.tile(1 / scale, self.task.copies.count).astype(np.float32))
        A, self.S = sparse.csr_array(self.A @ by), sparse.csr_array(self.S @ by @ by)
        together = np.maximum(A.sum(axis=1), 1e-6)
        less = np.minimum(1, 0.97 / together).astype(np.float32)
        self.A = sparse.csr_array(sparse.diags_array(less) @ A)
        return ((images - mean) * scale[:, None] + mean).astype(np.float32)
