"""GramExtract (`alg:private_attack`, Algorithm 2): how many private vectors two encodings share.

The covariance of |y_i| and |y_j| over the pixels is Ψ of the inner product of their selection
vectors (`lem:kr17`, `cor:kr17`),

    Ψ(z) = Cov(|a|, |b|) = (2/π)(z·arcsin z + √(1 − z²) − 1),     Ψ(0) = 0,  Ψ(1) = 1 − 2/π,

so that its inverse, rounded, is the Gram matrix of the selection vectors.

method="printed" is the algorithm line by line in NumPy: an m×m matrix, Ψ⁻¹ entry by entry, rounding
to multiples of 1/(k_pub + k_priv), the public part subtracted afterwards. method="fast" is the same
statistic in blocks (`overlap_engine`), and departs from the print in four ways:

  * entries are rounded to the lattice z(p, q) that belongs to the known number p of shared public
    vectors: the printed order is right for weighting="equal" and for k_pub = k_priv only (erratum 1
    of docs/paper_map.md);
  * thresholds lie where both errors are equally likely. Printed rounding has them at Ψ of the
    midpoint between two values of z, and since Ψ is flat near z = 0 that turns far more zeros into
    ones: for as few errors it needs about three times the pixels;
  * pairs are screened on part of the pixels, and with known public vectors a statistic that is
    linear in the overlap replaces the folded one;
  * the matrix is sparse, each entry has a confidence, and the number of wrong pairs to expect is
    part of the result.

Since Ψ increases, rounding z is comparing the covariance with fixed thresholds: no entry is ever
inverted. Cost: m²/2 products of the screening pixels.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil._version import __version__
from unveil.checks import DataLike, InputError
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.engine.blocks import must_fit, results, where, worker_count
from unveil.engine.files import Kept
from unveil.paper.overlap_engine import (
    OverlapEngine,
    Statistic,
    assisted_levels,
    folded_levels,
    make_plan,
    public_part,
    score_rows,
    weigh_evidence,
)
from unveil.records import Overlaps, Progress, Supports

Choice = Literal["auto"] | Statistic


# --- Algorithm 2 as printed ----------------------------------------------------------------------


def printed_gram(magnitudes: ArrayLike, k: int, eta: float) -> NDArray[np.float64]:
    """k·Σ* (m, m) from encodings (m, d) of unit selection vectors; lines as in the paper. k: all
    vectors of an encoding, public and private."""
    eta_star = eta**2 / 4  # line 1: η* ← O(η²), small enough that Ψ⁻¹(η*) < η
    z = np.asarray(magnitudes, np.float64).T  # line 2: z_1, …, z_d ∈ R^m
    centred = z - z.mean(axis=0)  # line 3: μ̂, Σ̂ and its clipped Σ̂'
    Sigma = np.maximum(centred.T @ centred / len(z), eta_star)
    Sigma_tilde = psi_inverse(Sigma)  # line 4: Σ̃ ← Ψ⁻¹(Σ̂'), erratum 3: the diagonal is Ψ(1)
    return np.rint(k * Sigma_tilde)  # lines 5, 6: k·Σ*, Σ* the nearest multiple of 1/k


def psi(z: ArrayLike) -> NDArray[np.float64]:
    """Ψ, even in z, for |z| ≤ 1."""
    z = np.asarray(z, dtype=np.float64)
    return np.asarray(2 / np.pi * (z * np.arcsin(z) + np.sqrt(1 - z * z) - 1))


def psi_inverse(covariance: ArrayLike) -> NDArray[np.float64]:
    """Ψ⁻¹ on [0, 1] of values clipped to [0, Ψ(1)].

    Ψ is convex and increasing with Ψ(z) ≥ z²/π, so that Newton's steps from √(π·c) descend to the
    root; they double the digits, and six reach rounding.
    """
    c = np.clip(np.asarray(covariance, dtype=np.float64), 0.0, 1 - 2 / np.pi)
    z = np.minimum(np.sqrt(np.pi * c), 1.0)
    for _ in range(6):
        slope = 2 / np.pi * np.arcsin(z)
        step = np.divide(psi(z) - c, slope, out=np.zeros_like(z), where=slope > 0)
        z = np.clip(z - step, 0.0, 1.0)
    return z


def _printed_overlaps(encodings: Encodings, supports: Supports | None, limit: int) -> Overlaps:
    """Lines 1 and 4 to 6 of Algorithm 4, line 1 with Algorithm 2: the public part is subtracted
    after rounding."""
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private + scheme.k_public
    must_fit(40 * m * m, f"method='printed' for {m:,} encodings", limit, "use method='fast'")
    # Selection vectors of unit length: rows in units of their root mean square.
    Y = encodings.magnitudes().astype(np.float64)
    Y /= np.maximum(np.sqrt(np.mean(Y**2, axis=1, keepdims=True)), 1e-300)
    # Line 1. GramExtract multiplies by k = k_pub + k_priv, and so we divide by it; the printed
    # 1/k_priv is for k_pub = 0. ‖w‖² is 2 for the printed weights (erratum 1), 1 for "equal".
    M = printed_gram(Y, k, eta=1 / (2 * k)) / k
    M *= scheme.public_variance + scheme.private_variance
    # Lines 4 and 5; 1/k_pub is the square of the printed weight.
    if supports is not None and scheme.k_public:
        named = supports.incidence(int(supports.indices.max()) + 1)
        M -= scheme.public_weight**2 * (named @ named.T).toarray()
    # Line 6; erratum 1: what is left need not be whole, and is rounded again, within 0 and k_priv.
    # An encoding shares k_priv vectors with itself, whatever was read.
    M = np.clip(np.rint(M / scheme.private_weight**2), 0, scheme.k_private)
    np.fill_diagonal(M, scheme.k_private)
    return Overlaps.from_array(M.astype(np.int64), scheme.k_private)


# --- The same, fast and strong -------------------------------------------------------------------


def gram_extract(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    supports: Supports | None = None,
    method: Literal["fast", "printed"] = "fast",
    statistic: Choice = "auto",
    loss: float = 1e-6,
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
    method : str
        "fast": in blocks, thresholds where both errors are equally likely. "printed": Algorithm 2
        line by line, an m×m matrix, none of the options below.
    statistic : str
        "auto": assisted when the public part is known, else folded.
    loss : float
        The share of overlapping pairs that a screen on part of the pixels may lose.
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
    `alg:private_attack`, `lem:gramextract`, `lem:kr17` of the paper; docs/attacks.md.

    Examples
    --------
    >>> import unveil
    >>> sim = unveil.simulate(unveil.Scheme(2), n_private=8, m=20, d=1500, rng=0)
    >>> overlaps = unveil.gram_extract(sim.encodings)
    >>> first, second = sim.selection.private[:2].tolist()
    >>> int(overlaps.toarray()[0, 1]) == len(set(first) & set(second))
    True
    """
    if method not in ("fast", "printed"):
        raise InputError(f"method={method!r}: choose one of fast, printed")
    limit = settle_limit(memory_limit)
    supports = _checked_supports(encodings, public, supports, limit, progress)
    if method == "printed":
        return _printed_overlaps(encodings, supports, limit)
    # 1. The plan, and where blocks are kept and run. Threads share the limit; processes bring their
    #    own memory.
    engine = overlap_engine(
        encodings, public, supports=supports, statistic=statistic, loss=loss, memory_limit=limit
    )
    tasks, here = engine.plan.tasks, where()
    folder = here.checkpoint if checkpoint is None else checkpoint
    kept = None
    if folder is not None:
        facts, arrays = engine.decided_by()
        kept = Kept(Path(folder), [__version__, *facts], *arrays)
    workers = worker_count(here.workers if workers is None else workers)
    scheduler = here.scheduler if scheduler is None else scheduler
    if scheduler is None:
        workers = max(1, min(workers, (limit // 2) // engine.plan.bytes_per_task))
    # 2. Blocks, put in the order of (i, j), whatever the order they were finished in.
    done: dict[tuple[int, int], dict[str, NDArray[Any]]] = {}
    how: dict[str, Any] = {"workers": workers, "scheduler": scheduler, "kept": kept}
    for task, block in results(_block, engine, tasks, **how):
        done[task] = block
        if progress:
            progress("overlaps", len(done), len(tasks))
    rows, columns, overlap, rival, margin = (
        np.concatenate([done[task][name] for task in sorted(tasks)])
        for name in ("rows", "columns", "overlap", "rival", "margin")
    )
    # 3. What they say together: fractions, confidence, errors to expect.
    fractions, wrong = weigh_evidence(overlap, rival, margin, engine.plan, engine.levels)
    odds = np.log(fractions[rival] / fractions[overlap]) - margin
    sure = (1 / (1 + np.exp(np.clip(odds, -80, 80)))).astype(np.float32)
    # 4. Both halves and the diagonal; the confidence has the places of the overlaps.
    m, k, own = encodings.m, encodings.scheme.k_private, np.arange(encodings.m, dtype=np.int32)
    places = np.concatenate([rows, columns, own]), np.concatenate([columns, rows, own])
    numbers = (overlap, np.full(m, k, np.int8)), (sure, np.ones(m, np.float32))
    matrix, confidence = (
        sparse.csr_array((np.concatenate([x, x, diagonal]), places), shape=(m, m))
        for x, diagonal in numbers
    )
    matrix.sort_indices()
    confidence.sort_indices()
    return Overlaps(matrix, k, wrong, confidence.data)


def _block(engine: OverlapEngine, task: tuple[int, int]) -> dict[str, NDArray[Any]]:
    return engine.block(*task)


def overlap_engine(
    encodings: Encodings,
    public: DataLike | None = None,
    *,
    supports: Supports | None = None,
    statistic: Choice = "auto",
    loss: float = 1e-6,
    sample: int = 256,
    memory_limit: int | None = None,
) -> OverlapEngine:
    """Checked input and the plan for it, before any block is computed; `engine.plan` says what will
    happen.

    sample: encodings, evenly spaced, whose pairs tell how dense the overlaps are
    """
    # 1. A question that can be asked, and the public part.
    scheme, m, d, limit = encodings.scheme, encodings.m, encodings.d, settle_limit(memory_limit)
    if statistic not in ("auto", "folded", "assisted"):
        raise InputError(f"statistic={statistic!r}: choose one of auto, folded, assisted")
    if not 0 < loss <= 0.5:
        raise InputError(f"loss={loss}: give a share above 0 and up to 0.5")
    vectors = as_public(public, encodings) if public is not None else None
    part = None
    if supports is not None and scheme.k_public:
        supports.incidence(len(vectors) if vectors is not None else int(supports.indices.max()) + 1)
        part = public_part(encodings, supports.indices, vectors)
    known = part is not None and part.vectors is not None
    if statistic == "assisted" and not known:
        raise InputError(
            "statistic='assisted' without public vectors: pass public= and k_public of 1 or more"
        )
    if statistic == "auto":
        statistic = "assisted" if known else "folded"
    levels = folded_levels(scheme)
    if statistic == "assisted" and part is not None:
        levels = assisted_levels(scheme.k_private, scheme.k_public, part.ratio)
    # 2. The densities of a sample. Half a pair more: a sample that shows none does not say that
    #    there are none.
    rows = np.unique(np.linspace(0, m - 1, min(m, sample)).astype(np.intp))
    scores, p = score_rows(encodings.values, rows, statistic, part)
    overlapping = (scores >= levels.balanced()[p, 0]).sum()
    counts = np.bincount(p, minlength=scheme.k_public + 1)
    plan = make_plan(
        levels,
        m,
        d,
        statistic=statistic,
        occupancy=float((overlapping + 0.5) / (len(p) + 1)),
        shared=tuple((counts / counts.sum()).tolist()) if len(p) else (1.0,),
        limit=limit,
        loss=loss,
    )
    return OverlapEngine(encodings.values, plan, levels, part, min(limit // 4, 512 << 20))


def _checked_supports(
    encodings: Encodings,
    public: DataLike | None,
    supports: Supports | None,
    limit: int,
    progress: Progress | None,
) -> Supports | None:
    """The supports, learned where they are not given; None without a public part."""
    scheme = encodings.scheme
    if scheme.k_private < 1:
        raise InputError("k_private=0: encodings without a private part have no private overlaps")
    if supports is None and scheme.k_public:
        from unveil.paper.learn_public import learn_public

        supports = learn_public(encodings, public, memory_limit=limit, progress=progress)
    if supports is not None and supports.indices.shape != (encodings.m, scheme.k_public):
        raise InputError(
            f"supports of shape {supports.indices.shape} for {encodings.m} encodings with "
            f"k_public={scheme.k_public}: learn them from these encodings"
        )
    return supports if scheme.k_public else None
