"""LearnPublic (`alg:public_attack`): one call for every method, checked input, supports with
confidence.

`folded-em` has four ways, by what is known:

    weights of the scheme, k_public given      `supports.folded.search`
    weights of the scheme, k_public unknown    k from a sample (`supports.weights.stepwise`), then
                                               the same
    weights unknown                            `supports.weights.stepwise`, each encoding by itself
    k_private = 0                              `supports.weights.exact`: nothing is noise, so that w
                                               is exact

Where the public vectors are not independent Gaussian pixels (`supports.correlated.pixel_law`) a
warning says so, `supports.correlated.tree_search` goes on from what folded-em found, and its
measured margins decide; with weights or k_public unknown nothing is certain there.

The private variance is the scheme's as long as the encodings agree. Additive noise, private vectors
that are not standard or of unknown scale show in the mean of y²: then the variance is taken from
there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from unveil.checks import DataLike, InputError
from unveil.encodings import Encodings, as_public
from unveil.parallel import memory_limit as settle_limit
from unveil.parallel import worker_count
from unveil.records import Progress, Supports
from unveil.scheme import Scheme
from unveil.supports.correlated.pixel_law import departures
from unveil.supports.correlated.tree_search import measured_search
from unveil.supports.folded.confidence import MARGIN, confidence, is_certain
from unveil.supports.folded.likelihood import Indices, Model
from unveil.supports.folded.search import FoundSupports, block_columns, folded_em
from unveil.supports.folded.survey import Public, mean_square, survey_public
from unveil.supports.paper.diagonal import diagonal_supports
from unveil.supports.paper.sdp import sdp_supports
from unveil.supports.weights.exact import TOLERANCE, retrieve
from unveil.supports.weights.stepwise import PRICE, SAMPLE, Estimate, estimate_scheme, learn_weights

METHODS = ("folded-em", "diagonal", "sdp")
TOO_GOOD, TOO_MANY = 3.5, 0.02
"""A fit z beyond 3.5 has a chance of 2e-4; more than one in fifty, and two, show a private part
that is not Gaussian."""
POOR, BETTER = -1.5, 1.0
"""A typical fit z below −1.5 says that the model is wrong, since it is 0 under the truth; another
k_public is named only where it fits by one standard deviation better."""
OFF = 0.05
"""How far the scheme's weight may be off the estimate, relative: the estimate is no better."""
CHANCE = 5.0
"""Standard errors by which the mean of y² may differ from the scheme's."""
LEAST = 1e-3
"""Share of mean y² that the private part has at least: beyond that there is nothing to search
in."""


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
        "folded-em": search in the folded-normal likelihood, with confidence.
        "diagonal": the screen of the paper's experiments, any n_public, all encodings in blocks.
        "sdp": the paper's program, one encoding at a time, n_public up to a few hundred.
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
        `warning` where scheme and encodings contradict each other.

    Raises
    ------
    InputError
        Where vectors do not fit the encodings, or the method does not fit the question.

    References
    ----------
    `alg:public_attack`, `lem:public` and `lem:population` of the paper; docs/learn_public.md.

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
    if method not in METHODS:
        raise InputError(f"method={method!r}: choose one of {', '.join(METHODS)}")
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
    vectors = as_public(public, encodings)
    k = encodings.scheme.k_public
    if vectors is None or (k == 0 and k_public is not None):
        return Supports(
            np.empty((encodings.m, 0), np.int64),
            np.ones(encodings.m),
            method,
            np.ones(encodings.m, bool),
        )
    if weights == "scheme" and not encodings.scheme.fixed_weights and encodings.scheme.k_private:
        raise InputError(
            f"weighting={encodings.scheme.weighting!r}: every encoding has weights of its own; "
            "use method='folded-em' with weights='unknown'"
        )
    # 3. The paper's methods.
    if method == "sdp":
        return sdp_supports(encodings, vectors, progress)
    if method == "diagonal":
        return Supports(
            *diagonal_supports(encodings.magnitudes(), vectors, k, limit=limit, progress=progress),
            method,
        )
    # 4. Folded-em, by what is known.
    surveyed = survey_public(vectors, block_columns(encodings.d, limit))
    if surveyed.count < max(1, 0 if k_public is None else k):
        raise InputError(
            f"k_public={k} of only {surveyed.count} public vectors that differ and are not zero: "
            "lower k_public or add vectors"
        )
    job = _Job(encodings, surveyed, None if k_public is None else k, limit, workers, progress)
    if encodings.scheme.k_private == 0:
        return job.without_private_part()
    # 5. Where vectors are not Gaussian, margins are measured, or nothing is certain.
    differ = departures(surveyed)
    if differ and weights == "scheme" and k_public is not None:
        return job.with_measured_margins(differ)
    found = job.with_unknown_weights() if weights == "unknown" else job.with_equal_weights()
    return _in_doubt(found, differ) if differ else found


@dataclass(frozen=True, eq=False)
class _Job:
    """One call of folded-em; k is None when unknown."""

    encodings: Encodings
    public: Public
    k: int | None
    limit: int
    workers: int
    progress: Progress | None

    def with_equal_weights(self) -> Supports:
        """The scheme's weights; k is estimated first where it is unknown."""
        if self.k is None:
            estimate = estimate_scheme(
                self.encodings, self.public, limit=self.limit, workers=self.workers
            )
            if estimate.k == 0:
                m = self.encodings.m
                words = "no public vector stands out: k_public is 0, or there are too few pixels"
                return Supports(
                    np.empty((m, 0), np.int64),
                    np.zeros(m),
                    "folded-em",
                    np.zeros(m, bool),
                    warning=words,
                )
            model = self._model(estimate.k, estimate)
        else:
            model = self._model(self.k)
        found = self._search(self.encodings, model, self.progress)
        warning = "" if self.k is None else self._contradiction(model, found)
        # More fits that are too good than chance allows: the private part is not Gaussian noise.
        if (
            self.k is not None
            and not warning
            and np.mean(found.fit > TOO_GOOD) > TOO_MANY + 2 / self.encodings.m
        ):
            return self.with_measured_margins(
                "private vectors are not independent Gaussian pixels", found.indices
            )
        return Supports(
            found.indices,
            confidence(found.margin, found.fit) * (not warning),
            "folded-em",
            certain=is_certain(found.margin, found.fit) & (not warning),
            interchangeable=self.public.interchangeable,
            warning=warning,
        )

    def with_measured_margins(self, differ: str, start: Indices | None = None) -> Supports:
        """The scheme's weights, vectors that are not Gaussian, `differ` says in what; from `start`,
        if there is one."""
        k = self.encodings.scheme.k_public
        if start is None:
            start = self._search(self.encodings, self._model(k)).indices
        found = measured_search(
            self.encodings,
            self.public,
            start,
            limit=self.limit,
            workers=self.workers,
            progress=self.progress,
        )
        words = [f"{differ}: margins were measured instead of assumed"]
        if 2 * int(found.stands.sum()) < self.encodings.m:
            words.append(
                f"most encodings look like more or fewer members than k_public={k}: "
                "check the scheme"
            )
        return Supports(
            found.indices,
            found.confidence,
            "folded-em",
            certain=found.certain,
            interchangeable=self.public.interchangeable,
            warning="; ".join(words),
        )

    def with_unknown_weights(self) -> Supports:
        """A member is safe by what dropping it loses beyond what the best of n others would gain in
        its place. With k unknown nothing is certain: a further vector of tiny weight can never be
        ruled out."""
        found = learn_weights(
            self.encodings,
            self.public,
            k_public=self.k,
            limit=self.limit,
            workers=self.workers,
            progress=self.progress,
        )
        price = np.log(self.public.count) + PRICE
        margin = found.weakest - np.maximum(found.following, price)
        if self.k is None:
            margin = np.minimum(margin, price - found.following)
        return Supports(
            found.indices,
            confidence(margin),
            "folded-em",
            certain=(margin >= MARGIN) & (self.k is not None),
            weights=found.weights,
            interchangeable=self.public.interchangeable,
        )

    def without_private_part(self) -> Supports:
        """k_private = 0: exact, or not solved."""
        solved = retrieve(
            self.encodings,
            self.public,
            k_public=self.k,
            limit=self.limit,
            workers=self.workers,
            progress=self.progress,
        )
        size = (solved.indices >= 0).sum(axis=1)
        exact = (solved.residual < TOLERANCE) & (size < self.encodings.d)
        width = max(int(size.max(initial=0)), self.k or 0)
        return Supports(
            solved.indices[:, :width],
            np.where(exact, 1.0, 0.0),
            "folded-em",
            certain=exact,
            weights=solved.weights[:, :width],
            interchangeable=self.public.interchangeable,
        )

    def _search(
        self, encodings: Encodings, model: Model, progress: Progress | None = None
    ) -> FoundSupports:
        return folded_em(
            encodings, self.public, model, limit=self.limit, workers=self.workers, progress=progress
        )

    def _model(self, k: int, estimate: Estimate | None = None) -> Model:
        """The scheme with k public vectors; where it is more than a twentieth off the estimate, the
        estimate."""
        scheme = replace(self.encodings.scheme, k_public=k)
        if estimate is not None and abs(estimate.weight / scheme.public_weight - 1) > OFF:
            return Model(k, estimate.weight, estimate.variance, self.public.power)
        return Model(k, scheme.public_weight, self._private_variance(scheme), self.public.power)

    def _private_variance(self, scheme: Scheme) -> float:
        """The scheme's, or what the public part leaves of mean y² when that is off by more than
        chance (5σ) or all we know."""
        encodings, power = self.encodings, self.public.power
        total = mean_square(encodings.values)
        known = scheme.public_variance * power
        left = max(total - known, LEAST * total, 1e-12)
        if encodings.pixel_rms is None:
            return left
        expected = scheme.private_variance * encodings.pixel_rms**2
        # Encodings share public vectors: no more than n_public/k_public of them count as
        # independent.
        independent = encodings.d * min(encodings.m, max(1, self.public.count // scheme.k_public))
        chance = np.sqrt((2 * known**2 + 4 * known * expected) / independent)
        return expected if abs(total - known - expected) <= CHANCE * chance else left

    def _contradiction(self, model: Model, found: FoundSupports) -> str:
        """In words: that another k_public fits these encodings, and the given one does not. Empty:
        no contradiction."""
        typical = float(np.median(found.fit))
        if typical > POOR - 2 / np.sqrt(self.encodings.m):
            return ""
        # Which k_public would fit, and does it? Asked of a sample: the search is not cheap.
        estimate = estimate_scheme(
            self.encodings, self.public, limit=self.limit, workers=self.workers
        )
        if estimate.k in (0, model.k):
            return ""
        some = np.arange(0, self.encodings.m, -(-self.encodings.m // SAMPLE))
        sample = Encodings(
            self.encodings.values[some], self.encodings.scheme, self.encodings.pixel_rms
        )
        better = float(np.median(self._search(sample, self._model(estimate.k, estimate)).fit))
        if better < max(POOR, typical + BETTER):
            return ""
        return (
            f"k_public={model.k} does not fit these encodings, they look like "
            f"k_public={estimate.k}: correct the scheme, or give k_public=None"
        )


def _in_doubt(found: Supports, differ: str) -> Supports:
    """Margins of a likelihood that is known to be wrong: nothing is certain, nothing likelier than
    not."""
    words = f"{differ}: with weights or k_public unknown nothing is certain"
    return replace(
        found,
        confidence=np.minimum(found.confidence, 0.5),
        certain=np.zeros(len(found.indices), bool),
        warning="; ".join(w for w in (found.warning, words) if w),
    )
