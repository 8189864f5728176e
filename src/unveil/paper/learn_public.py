"""LearnPublic (`alg:public_attack`, Algorithm 1; `lem:public`): which public vectors are mixed in.

    line 1  M̃ ← (1/d)·Σ_j (y_j² − 1)·([p_j]_S [p_j]_Sᵀ − I),       E[M̃] = 2·[w]_S [w]_Sᵀ
    line 2  Z ← argmax ⟨Z, M̃⟩  subject to  Z ⪰ 0, Tr Z = 1, Σ|Z_ij| ≤ k_public
    line 3  w̃ ← the top eigenvector of Z
    line 4  return the k_public coordinates of w̃ that are largest in magnitude

The expectation is for ‖w‖ = 1. (`lem:population` prints ½ for the 2 of its own derivation: erratum
2 of docs/paper_map.md; `lem:public` means d ≥ poly(k)·log(n/δ): erratum 4.) The paper takes
E[y²] = 1; we divide y² by its empirical mean, which is right for every weighting and takes noise
out.

method="printed" (or "sdp") is this algorithm, the program solved by our own ADMM. method="diagonal"
is what the paper's experiments use instead: the 25 public vectors of the largest Σ_j y_j²p_j² are
kept, and the top eigenvector of M̃ on those alone takes the place of lines 2 and 3. method="fast"
(or "folded-em", the default) searches in the likelihood:

    weights of the scheme, k_public given      `folded_search`
    … and vectors that are not Gaussian        then `tree_law`, and nothing is called certain
    weights of the scheme, k_public unknown    k from a sample (`unknown_weights`), then the same
    weights unknown                            `unknown_weights`, each encoding by itself
    k_private = 0                              w is exact (`rivals.phase_retrieval`)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from unveil.checks import DataLike, InputError
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.engine.blocks import rows_per_block, worker_count
from unveil.paper.folded_search import (
    FoundSupports,
    Model,
    Public,
    confidence,
    folded_em,
    is_certain,
    mean_square,
    survey_public,
    top_products,
)
from unveil.records import Progress, Supports
from unveil.scheme import Scheme

METHODS = ("folded-em", "diagonal", "sdp")
ALIASES = {"fast": "folded-em", "printed": "sdp"}
Floats = NDArray[np.float32]
Reals = NDArray[np.float64]


# --- Algorithm 1 as printed ----------------------------------------------------------------------


def printed_support(magnitudes: Floats, public: Floats, k: int) -> tuple[NDArray[np.int64], float]:
    """The support of one encoding (d,), sorted, and how far its last entry stands from the next, in
    [0, 1]; lines as in the paper."""
    M = moment_matrix(magnitudes, public)  # line 1
    Z = solve_sdp(M, k).matrix  # line 2
    n = len(Z)
    w = eigh(Z, subset_by_index=[n - 1, n - 1])[1][:, 0]  # line 3
    return _largest(w, k)  # line 4


def _largest(w: Reals, k: int) -> tuple[NDArray[np.int64], float]:
    size = np.abs(w)
    order = np.argsort(-size, kind="stable")
    margin = 1 - size[order[k]] / max(size[order[k - 1]], 1e-300) if k < len(w) else 1.0
    return np.sort(order[:k]), float(margin)


def moment_matrix(magnitudes: Floats, public: Floats) -> Reals:
    """M̃ (n_public, n_public) of one encoding (d,). Cost d·n_public²."""
    z = moment_weights(magnitudes)
    moment = ((public * z.astype(np.float32)) @ public.T / len(z)).astype(np.float64)
    moment[np.diag_indices_from(moment)] -= z.mean()  # −I of line 1: 0 up to rounding
    return moment


def moment_weights(magnitudes: Floats) -> Reals:
    """y²/mean(y²) − 1 along the last axis; zeros for an encoding of zeros, which says nothing."""
    square = magnitudes.astype(np.float64) ** 2
    mean = square.mean(axis=-1, keepdims=True)
    return np.asarray(np.divide(square, mean, out=np.ones_like(square), where=mean > 0) - 1)


@dataclass(frozen=True, eq=False)
class SdpSolution:
    """Z (n, n), feasible; its value ⟨Z, M̃⟩; an upper bound on every feasible value; steps
    taken."""

    matrix: Reals
    value: float
    bound: float
    steps: int


def solve_sdp(
    moment: Reals, k_public: int, *, gap: float = 1e-4, max_steps: int = 2000, relax: float = 1.6
) -> SdpSolution:
    """The program of line 2 by ADMM; stops when bound and value, in units of the largest |M̃_ij|,
    are within gap·max(1, |value|).

    Z is on the spectraplex (one eigendecomposition per step), its copy U on the ℓ1 ball (one sort),
    and V is the multiplier of Z = U times the step. It certifies the answer: for every symmetric Y
    λ_max(M̃ − Y) + k·max|Y| is an upper bound, and here Y = V/step. relax: over-relaxation (Boyd et
    al. 2011, 3.4.3). O(n³) per step, a few hundred steps; the paper cites an interior-point method
    of cost n^{2ω+1}.
    """
    n, radius = len(moment), float(k_public)
    # A common scale makes one step length serve every instance.
    scale = float(np.abs(moment).max()) or 1.0
    M, step = moment / scale, 1.0 / max(1, k_public)
    U, V = np.zeros((n, n)), np.zeros((n, n))
    Z, value, bound, steps = U, -np.inf, np.inf, 0
    for steps in range(1, max_steps + 1):
        # 1. The spectraplex, the ℓ1 ball, and the multiplier between them.
        A = U - V + step * M
        values, vectors = eigh((A + A.T) / 2, driver="evd")
        Z = (vectors * _onto_simplex(values, 1.0)) @ vectors.T
        relaxed = relax * Z + (1 - relax) * U
        U = size = relaxed + V
        if np.abs(size).sum() > radius:
            U = np.sign(size) * _onto_simplex(np.abs(size).ravel(), radius).reshape(n, n)
        V = V + relaxed - U
        # 2. Every tenth step: a value that is reached, and a bound that no other can exceed.
        if steps % 10 == 0 or steps == max_steps:
            value = float(np.vdot(_feasible(Z, k_public), M))
            Y = V / step
            top = float(eigh(M - Y, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0])
            bound = min(bound, top + k_public * float(np.abs(Y).max()))
            if bound - value <= gap * max(1.0, abs(value)):
                break
    return SdpSolution(_feasible(Z, k_public), value * scale, bound * scale, steps)


def _onto_simplex(v: Reals, radius: float) -> Reals:
    """The nearest point with u ≥ 0 and Σu = radius."""
    ordered = np.sort(v)[::-1]
    excess = (np.cumsum(ordered) - radius) / np.arange(1, len(v) + 1)
    return np.asarray(np.maximum(v - excess[np.flatnonzero(ordered > excess)[-1]], 0))


def _feasible(Z: Reals, k_public: int) -> Reals:
    """Z mixed with its own diagonal, whose ℓ1 norm is 1, by just as much as the ℓ1 constraint asks
    for."""
    size = float(np.abs(Z).sum())
    if size <= k_public:
        return Z
    share = (k_public - 1.0) / (size - 1.0)
    return share * Z + (1 - share) * np.diag(np.diag(Z))


def diagonal_support(
    magnitudes: Floats, public: Floats, candidates: NDArray[np.int64], k: int
) -> tuple[NDArray[np.int64], float]:
    """As in the paper's experiments: lines 1, 3 and 4 on the vectors that the screen has left, the
    top eigenvector being that of M̃ instead of Z."""
    w = np.linalg.eigh(moment_matrix(magnitudes, public[candidates]))[1][:, -1]
    found, margin = _largest(w, k)
    return np.sort(candidates[found]), margin


# --- One call for every method -------------------------------------------------------------------


def learn_public(
    encodings: Encodings,
    public: DataLike | None,
    *,
    method: str = "folded-em",
    k_public: Literal["scheme"] | None = "scheme",
    weights: Literal["scheme", "unknown"] = "scheme",
    workers: int | None = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Supports:
    """Which public vectors each encoding uses, supp([w]_S), with a confidence for each.

    Parameters
    ----------
    encodings : Encodings
        The encodings, with their scheme.
    public : array of shape (n_public, d) or None
        The public vectors; may be memory-mapped. None only where the scheme has no public part.
    method : str
        "folded-em", also "fast": search in the folded-normal likelihood, with confidence.
        "sdp", also "printed": Algorithm 1, one encoding at a time, n_public up to 1000.
        "diagonal": the screen of the paper's experiments, any n_public.
    k_public : "scheme" or None
        None: unknown, to be estimated ("folded-em" only).
    weights : "scheme" or "unknown"
        "unknown": nonnegative, different in every encoding, to be estimated ("folded-em" only).
    workers : int or None
        Threads; None: one per core. The answer does not depend on it.
    memory_limit : int or None
        Bytes that may be taken; None: half of what is free.
    progress : callable or None
        progress(stage, done, total), called as encodings are done.

    Returns
    -------
    Supports
        `indices` (m, k_public), sorted in each row, `confidence` in [0, 1], `certain`, and a
        `warning` where scheme and encodings contradict each other, or where public vectors are not
        what the likelihood assumes: then nothing is certain, and no confidence exceeds one half.

    Raises
    ------
    InputError
        Where vectors do not fit the encodings, or the method does not fit the question.

    References
    ----------
    `alg:public_attack`, `lem:public` and `lem:population` of the paper.

    Examples
    --------
    >>> import unveil
    >>> scheme = unveil.Scheme(k_private=2, k_public=2)
    >>> sim = unveil.simulate(scheme, n_private=10, n_public=30, m=5, d=600, rng=0)
    >>> supports = unveil.learn_public(sim.encodings, sim.public)
    >>> bool((supports.indices == sim.selection.public).all())
    True
    """
    # 1. A question that can be asked.
    scheme, m, k = encodings.scheme, encodings.m, encodings.scheme.k_public
    method = ALIASES.get(method, method)
    if method not in METHODS:
        raise InputError(f"method={method!r}: choose one of {', '.join((*METHODS, *ALIASES))}")
    if k_public not in ("scheme", None):
        raise InputError(
            f"k_public={k_public!r}: say it in the Scheme, or give None to have it estimated"
        )
    if weights not in ("scheme", "unknown"):
        raise InputError(f"weights={weights!r}: choose one of scheme, unknown")
    if method != "folded-em" and (k_public is None or weights == "unknown"):
        raise InputError(
            f"method={method!r} needs k_public and weights of the scheme: use method='folded-em'"
        )
    limit, workers = settle_limit(memory_limit), worker_count(workers)
    if k_public is None and public is None:
        raise InputError("k_public=None but no public vectors: pass public=")
    # 2. Vectors that fit; without a public part there is nothing to learn.
    P = as_public(public, encodings)
    if P is None or (k == 0 and k_public is not None):
        return Supports(np.empty((m, 0), np.int64), np.ones(m), method, np.ones(m, bool))
    if weights == "scheme" and not scheme.fixed_weights and scheme.k_private:
        raise InputError(
            f"weighting={scheme.weighting!r}: every encoding has weights of its own; "
            "use method='folded-em' with weights='unknown'"
        )
    if method == "sdp" and len(P) > 1000:
        raise InputError(
            f"method='sdp' with n_public={len(P)}: it costs n_public³ per step; use "
            "method='folded-em'"
        )
    surveyed = survey_public(P, limit)
    # 3. The paper's methods, encoding by encoding.
    if method != "folded-em":
        return _by_moments(encodings, P, method, limit, progress)
    # 4. The likelihood, by what is known.
    if surveyed.count < max(1, 0 if k_public is None else k):
        raise InputError(
            f"k_public={k} of only {surveyed.count} public vectors that differ and are not zero: "
            "lower k_public or add vectors"
        )
    job = _Job(encodings, surveyed, limit, workers, progress)
    if scheme.k_private == 0:
        return job.without_private_part(None if k_public is None else k)
    from unveil.paper.tree_law import departures

    differ = departures(surveyed)
    if weights == "unknown":
        found = job.with_unknown_weights(None if k_public is None else k)
    elif k_public is None:
        found = job.with_unknown_number()
    else:
        return job.with_known_weights(differ)
    return _in_doubt(found, differ) if differ else found


def _by_moments(
    encodings: Encodings, P: Floats, method: str, limit: int, progress: Progress | None
) -> Supports:
    m, d, k = encodings.m, encodings.d, encodings.scheme.k_public
    indices, margin = np.empty((m, k), np.int64), np.empty(m)
    block = rows_per_block(16 * d, limit // 4, most=512)
    # The screen of the paper's experiments: Σ y²p² for all vectors in blocks; 25 are kept.
    every = Public(P, np.ones(len(P), bool), (), 1.0, rows_per_block(8 * d, limit // 4, most=4096))
    kept = min(len(P), max(25, k))
    for start in range(0, m, block):
        Y = encodings.magnitudes(slice(start, start + block))
        if method == "diagonal":
            square = (moment_weights(Y) + 1).astype(np.float32)
            pool = top_products(square, every, kept, clip=np.inf)[1]
        for at, y in enumerate(Y):
            i = start + at
            if method == "sdp":
                indices[i], margin[i] = printed_support(y, P, k)
            else:
                indices[i], margin[i] = diagonal_support(y, P, pool[at], k)
            if progress and (method == "sdp" or at == len(Y) - 1):
                progress("learn public", i + 1, m)
    return Supports(indices, margin, method)


@dataclass(frozen=True, eq=False)
class _Job:
    """One call of folded-em."""

    encodings: Encodings
    public: Public
    limit: int
    workers: int
    progress: Progress | None

    @property
    def means(self) -> dict[str, Any]:
        return {"limit": self.limit, "workers": self.workers, "progress": self.progress}

    def with_known_weights(self, differ: str) -> Supports:
        """The scheme's weights and k_public; `differ` says how the vectors are not Gaussian."""
        model = self._model(self.encodings.scheme.k_public)
        found = self._search(self.encodings, model, self.progress if not differ else None)
        warning = "" if differ else self._contradiction(model, found)
        # A fit z beyond 3.5 has a chance of 2e-4; one in fifty, and two, show a private part that
        # is not Gaussian.
        if not differ and not warning and np.mean(found.fit > 3.5) > 0.02 + 2 / self.encodings.m:
            differ = "private vectors are not independent Gaussian pixels"
        if not differ:
            return self._supports(found, warning)
        from unveil.paper.tree_law import tree_search

        better = tree_search(self.encodings, self.public, found.indices, **self.means)
        return _in_doubt(self._supports(replace(found, indices=better), ""), differ)

    def with_unknown_number(self) -> Supports:
        """The scheme's weights; k_public from a sample."""
        from unveil.paper.unknown_weights import estimate_scheme

        m = self.encodings.m
        k, weight, variance = estimate_scheme(
            self.encodings, self.public, limit=self.limit, workers=self.workers
        )
        if k == 0:
            words = "no public vector stands out: k_public is 0, or there are too few pixels"
            none = np.empty((m, 0), np.int64)
            return Supports(none, np.zeros(m), "folded-em", np.zeros(m, bool), warning=words)
        model = self._model(k, weight, variance)
        return self._supports(self._search(self.encodings, model, self.progress), "")

    def with_unknown_weights(self, k: int | None) -> Supports:
        """A member is safe by what dropping it loses beyond what the best of n others would gain in
        its place. With k unknown nothing is certain: a further vector of tiny weight can never be
        ruled out."""
        from unveil.paper.unknown_weights import learn_weights, price_of

        found = learn_weights(self.encodings, self.public, k_public=k, **self.means)
        price = price_of(self.public)
        margin = found.weakest - np.maximum(found.following, price)
        if k is None:
            margin = np.minimum(margin, price - found.following)
        certain, equal = (margin >= 10) & (k is not None), self.public.interchangeable
        return Supports(
            found.indices, confidence(margin), "folded-em", certain, found.weights, equal
        )

    def without_private_part(self, k: int | None) -> Supports:
        """k_private = 0: exact, or not solved."""
        from unveil.rivals.phase_retrieval import retrieve

        found = retrieve(self.encodings, self.public, k_public=k, **self.means)
        sure, equal = found.exact.astype(np.float64), self.public.interchangeable
        return Supports(found.indices, sure, "folded-em", found.exact, found.weights, equal)

    def _supports(self, found: FoundSupports, warning: str) -> Supports:
        sure = confidence(found.margin, found.fit) * (not warning)
        certain = is_certain(found.margin, found.fit) & (not warning)
        equal = self.public.interchangeable
        return Supports(found.indices, sure, "folded-em", certain, None, equal, warning)

    def _search(
        self, encodings: Encodings, model: Model, progress: Progress | None = None
    ) -> FoundSupports:
        means = {**self.means, "progress": progress}
        return folded_em(encodings, self.public, model, **means)

    def _model(self, k: int, weight: float = 0.0, variance: float = 0.0) -> Model:
        """The scheme with k public vectors; where its weight is more than a twentieth off the one
        that was estimated, the estimate."""
        scheme = replace(self.encodings.scheme, k_public=k)
        if weight and abs(weight / scheme.public_weight - 1) > 0.05:
            return Model(k, weight, variance, self.public.power)
        return Model(k, scheme.public_weight, self._private_variance(scheme), self.public.power)

    def _private_variance(self, scheme: Scheme) -> float:
        """The scheme's, or what the public part leaves of mean y² when that is off by more than
        chance (5σ), as noise or private vectors of another size show, or is all we know."""
        encodings, power = self.encodings, self.public.power
        total, known = mean_square(encodings.values), scheme.public_variance * power
        left = max(total - known, 1e-3 * total, 1e-12)
        if encodings.pixel_rms is None:
            return left
        expected = scheme.private_variance * encodings.pixel_rms**2
        # Encodings share public vectors: no more than n_public/k_public of them count as
        # independent.
        independent = encodings.d * min(encodings.m, max(1, self.public.count // scheme.k_public))
        chance = np.sqrt((2 * known**2 + 4 * known * expected) / independent)
        return expected if abs(total - known - expected) <= 5 * chance else left

    def _contradiction(self, model: Model, found: FoundSupports) -> str:
        """In words: that another k_public fits these encodings, and the given one does not. Under
        the truth the typical fit is 0; another k_public is named only where it fits by one standard
        deviation better."""
        from unveil.paper.unknown_weights import estimate_scheme

        typical, m = float(np.median(found.fit)), self.encodings.m
        if typical > -1.5 - 2 / np.sqrt(m):
            return ""
        k, weight, variance = estimate_scheme(
            self.encodings, self.public, limit=self.limit, workers=self.workers
        )
        if k in (0, model.k):
            return ""
        sample = replace(self.encodings, values=self.encodings.values[:: -(-m // 64)], labels=None)
        better = float(np.median(self._search(sample, self._model(k, weight, variance)).fit))
        if better < max(-1.5, typical + 1):
            return ""
        return (
            f"k_public={model.k} does not fit these encodings, they look like "
            f"k_public={k}: correct the scheme, or give k_public=None"
        )


def _in_doubt(found: Supports, differ: str) -> Supports:
    """Margins of a likelihood that is known to be wrong say nothing: no support is certain."""
    words = f"{differ}: no support is called certain"
    return replace(
        found,
        confidence=np.minimum(found.confidence, 0.5),
        certain=np.zeros(len(found.indices), bool),
        warning="; ".join(w for w in (found.warning, words) if w),
    )
