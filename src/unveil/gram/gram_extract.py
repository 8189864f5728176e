"""GramExtract (`alg:private_attack`, `lem:gramextract`): from encodings to the overlaps of their
private subsets.

The covariance of |y_i| and |y_j| over the pixels is Ψ of the correlation z(p, q) of two encodings
that share p public and q private vectors: a lattice in q once p is known from the supports. The
paper inverts Ψ entry by entry, rounds to multiples of 1/k and subtracts the public part afterwards,
which is right only for k_pub = k_priv; we round to the lattice that belongs to p. Since Ψ
increases, rounding z is comparing the covariance with fixed thresholds: no entry is ever inverted.

Two places for the thresholds between neighbouring q:
  "paper"     Ψ of the midpoint, i.e. z rounded to the nearest lattice point: the printed algorithm,
              one pass, nothing else;
  "balanced"  where both errors are equally likely. At overlap 0 Ψ is flat, and the paper's midpoint
              lies far too close to it: balanced needs about a third of the pixels.

Where we go beyond the print (`gram/engine/plan.py`, `gram/engine/blocks.py`): pairs are screened on
part of the pixels, pairs in doubt are decided by their likelihood, and with a known public part a
statistic that is linear in the overlap replaces the folded one. Every entry has a confidence, and
the number of wrong pairs to expect is part of the result (`gram/engine/evidence.py`).

Cost m²/2 products of the screening pixels; memory: blocks under the limit, and the sparse result.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import numpy as np

from unveil.checks import DataLike, InputError
from unveil.cluster import results
from unveil.encodings import Encodings, as_public
from unveil.gram.engine.blocks import Block, OverlapEngine, score_rows
from unveil.gram.engine.checkpoint import Checkpoint
from unveil.gram.engine.evidence import assemble, weigh_evidence
from unveil.gram.engine.plan import (
    LOSS,
    ROUNDINGS,
    Doubt,
    OverlapPlan,
    Rounding,
    level_thresholds,
    make_plan,
)
from unveil.gram.levels import Levels, lattice
from unveil.gram.statistics import STATISTICS, KnownPublic, Statistic, public_part, statistic_levels
from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import where, worker_count
from unveil.records import Overlaps, Progress, Supports
from unveil.supports import learn_public

Choice = Literal["auto"] | Statistic
SAMPLE = 256
"""Encodings, evenly spaced, whose pairs tell the plan how dense the overlaps are."""
CACHE = 512 << 20
"""Features kept at most, however much memory there is."""


def gram_extract(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    supports: Supports | None = None,
    statistic: Choice = "auto",
    rounding: Rounding = "balanced",
    loss: float = LOSS,
    memory_limit: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> Overlaps:
    """How many private vectors each two encodings share (GramExtract).

    Parameters
    ----------
    encodings : Encodings
        The encodings, with their scheme.
    public : array of shape (n_public, d) or None
        The public vectors, where the scheme has a public part. With them the assisted statistic is
        used, which needs far fewer pixels.
    supports : Supports or None
        Which public vectors each encoding uses; their share of the overlap is taken off. None:
        learned here.
    statistic : str
        "auto": assisted when the public part is known, else folded with likelihood where in doubt.
        "folded", "squares", "assisted": this one alone. "likelihood": likelihood for all that
        survive the screen.
    rounding : str
        "balanced": thresholds where both errors are equally likely. "paper": Ψ of the midpoint, as
        printed, for the folded statistic.
    loss : float
        The fraction of overlapping pairs that a screen on part of the pixels may lose. More is
        faster, for who can do without some of them.
    memory_limit : int or None
        Bytes that may be taken; None: half of what is free.
    workers : int or None
        Threads, or processes of a local cluster; None: one per core. The result does not depend on
        it.
    scheduler : str or None
        None: threads. "processes": a local Dask cluster. "tcp://…": an existing one.
    checkpoint : path or None
        Folder for finished blocks: the same call after an interruption goes on from there.
    progress : callable or None
        progress(stage, done, total), called as blocks are done.

    Returns
    -------
    Overlaps
        Sparse, with a confidence for every entry and the number of wrong pairs to expect.

    Raises
    ------
    InputError
        Where there is no private part, options contradict each other, or Dask is asked for and not
        installed.

    References
    ----------
    `alg:private_attack`, `lem:gramextract`, `lem:kr17` of the paper; docs/scale.md.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=8, m=20, d=1500, rng=0)
    >>> overlaps = unveil.gram_extract(sim.encodings)
    >>> first, second = sim.selection.private[:2].tolist()
    >>> int(overlaps.toarray()[0, 1]) == len(set(first) & set(second))
    True
    """
    # 1. Checked input, and the plan for it.
    engine = overlap_engine(
        encodings,
        public,
        supports=supports,
        statistic=statistic,
        rounding=rounding,
        loss=loss,
        memory_limit=memory_limit,
        workers=workers,
        progress=progress,
    )
    # 2. Blocks, those of an earlier run included.
    default = where()
    folder = checkpoint if checkpoint is not None else default.checkpoint
    blocks = _blocks(
        engine,
        Checkpoint(Path(folder), engine) if folder is not None else None,
        workers if workers is not None else default.workers,
        scheduler if scheduler is not None else default.scheduler,
        settle_limit(memory_limit),
        progress,
    )
    # 3. What they say together: fractions, confidence, errors to expect.
    table = np.sum([block.table for block in blocks], axis=0)
    evidence = weigh_evidence(table, engine.plan, engine.levels)
    k = encodings.scheme.k_private
    matrix, confidence = assemble(blocks, encodings.m, k, evidence.fractions)
    return Overlaps(matrix, k, evidence.expected_errors, confidence)


def overlap_engine(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    supports: Supports | None = None,
    statistic: Choice = "auto",
    rounding: Rounding = "balanced",
    loss: float = LOSS,
    memory_limit: int | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> OverlapEngine:
    """Checked input and the plan for it, before any block is computed; `engine.plan` says what will
    happen."""
    # 1. A question that can be asked.
    scheme = encodings.scheme
    if scheme.k_private < 1:
        raise InputError("k_private=0: encodings without a private part have no private overlaps")
    if rounding not in ROUNDINGS:
        raise InputError(f"rounding={rounding!r}: choose one of {', '.join(ROUNDINGS)}")
    if statistic not in ("auto", *STATISTICS):
        raise InputError(f"statistic={statistic!r}: choose one of auto, {', '.join(STATISTICS)}")
    if rounding == "paper" and statistic not in ("auto", "folded"):
        raise InputError(
            f"rounding='paper' with statistic={statistic!r}: the paper's thresholds are for the "
            "folded statistic"
        )
    worker_count(workers)
    # 2. The public part: learned where it is not given.
    limit = settle_limit(memory_limit)
    if supports is None and scheme.k_public:
        supports = learn_public(encodings, public, memory_limit=memory_limit, progress=progress)
    if supports is not None and supports.indices.shape != (encodings.m, scheme.k_public):
        raise InputError(
            f"supports of shape {supports.indices.shape} for {encodings.m} encodings with "
            f"k_public={scheme.k_public}: learn them from these encodings"
        )
    vectors = as_public(public, encodings) if public is not None else None
    if supports is not None and scheme.k_public:
        # Complains of supports that do not belong to these vectors.
        supports.incidence(len(vectors) if vectors is not None else int(supports.indices.max()) + 1)
    part = (
        public_part(encodings, supports.indices, vectors)
        if supports is not None and scheme.k_public
        else None
    )
    # 3. Statistic and plan.
    chosen, doubt = _choose(statistic, rounding, part)
    levels = statistic_levels(chosen, scheme, part)
    plan = _plan(encodings, part, chosen, doubt, rounding, levels, limit, loss)
    return OverlapEngine(encodings.values, scheme, plan, levels, part, min(limit // 4, CACHE))


def _choose(
    statistic: Choice, rounding: Rounding, part: KnownPublic | None
) -> tuple[Statistic, Doubt]:
    if statistic == "likelihood":
        return "folded", "always"
    if statistic != "auto":
        return statistic, "never"
    if rounding == "paper":
        return "folded", "never"
    if part is not None and part.vectors is not None:
        return "assisted", "never"
    return "folded", "affordable"


def _plan(
    encodings: Encodings,
    part: KnownPublic | None,
    statistic: Statistic,
    doubt: Doubt,
    rounding: Rounding,
    levels: Levels,
    limit: int,
    loss: float,
) -> OverlapPlan:
    """The cheapest plan for the density of overlaps found in a sample."""
    m, d, z = encodings.m, encodings.d, lattice(encodings.scheme)
    # Evenly spaced: encodings of one epoch lie side by side and may share more or less.
    rows = np.unique(np.linspace(0, m - 1, min(m, SAMPLE)).astype(np.intp))
    C, shared = score_rows(encodings.values, rows, statistic, part)
    above = np.triu_indices(len(rows), 1)
    p = shared[above]
    # Half a pair more: a sample that shows none does not say that there are none.
    found = C[above] >= level_thresholds(levels, rounding, z)[p, 0]
    counts = np.bincount(p, minlength=encodings.scheme.k_public + 1)
    return make_plan(
        levels,
        m,
        d,
        statistic=statistic,
        rounding=rounding,
        z=z,
        doubt=doubt,
        occupancy=float((found.sum() + 0.5) / (len(found) + 1)),
        shared=tuple((counts / max(counts.sum(), 1)).tolist()) if len(p) else (1.0,),
        limit=limit,
        loss=loss,
    )


def _blocks(
    engine: OverlapEngine,
    checkpoint: Checkpoint | None,
    workers: int | None,
    scheduler: str | None,
    limit: int,
    progress: Progress | None,
) -> list[Block]:
    """All blocks in the order of (i, j), whatever the order they were finished in."""
    tasks = engine.plan.tasks
    done: dict[tuple[int, int], Block] = {}
    if checkpoint is not None:
        done = {task: block for task in tasks if (block := checkpoint.read(*task)) is not None}
    left = [task for task in tasks if task not in done]
    if progress and done:
        progress("overlaps", len(done), len(tasks))
    if scheduler is None:  # threads share the limit; processes bring their own memory
        workers = max(1, min(worker_count(workers), (limit // 2) // engine.plan.bytes_per_task))
    for task, block in results(_block, engine, left, workers=workers, scheduler=scheduler):
        if checkpoint is not None:
            checkpoint.write(*task, block)
        done[task] = block
        if progress:
            progress("overlaps", len(done), len(tasks))
    return [done[task] for task in sorted(tasks)]


def _block(engine: OverlapEngine, task: tuple[int, int]) -> Block:
    return engine.block(*task)
