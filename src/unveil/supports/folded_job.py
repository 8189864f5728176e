"""The four ways of folded-em: each takes what is known to a search, and what that finds to supports
that say how certain they are.

The private variance is the scheme's as long as the encodings agree. Additive noise, private vectors
that are not standard or of unknown scale show in the mean of y²: then the variance is taken from
there. Which way is taken says `supports.learn_public`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unveil.encodings import Encodings
from unveil.records import Progress, Supports
from unveil.scheme import Scheme
from unveil.supports.correlated.tree_search import measured_search
from unveil.supports.folded.confidence import MARGIN, confidence, is_certain
from unveil.supports.folded.likelihood import Indices, Model
from unveil.supports.folded.search import FoundSupports, folded_em
from unveil.supports.folded.sieve import sieve_pixels
from unveil.supports.folded.survey import Public, mean_square
from unveil.supports.weights.exact import TOLERANCE, retrieve
from unveil.supports.weights.stepwise import PRICE, SAMPLE, Estimate, estimate_scheme, learn_weights

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


@dataclass(frozen=True, eq=False)
class FoldedJob:
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
        # With k given, tests found independent Gaussian pixels: any part of them speaks for all.
        sieve = sieve_pixels(model, self.public.count, self.encodings.d) if self.k else 0
        found = replace(self, public=replace(self.public, sieve=sieve))._search(
            self.encodings, model, self.progress
        )
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
        found = measured_search(self.encodings, self.public, start, **self._means)
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
        found = learn_weights(self.encodings, self.public, k_public=self.k, **self._means)
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
        solved = retrieve(self.encodings, self.public, k_public=self.k, **self._means)
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

    @property
    def _means(self) -> dict[str, Any]:
        """What every search may use, and whom it tells."""
        return {"limit": self.limit, "workers": self.workers, "progress": self.progress}

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


def in_doubt(found: Supports, differ: str) -> Supports:
    """Margins of a likelihood that is known to be wrong: nothing is certain, nothing likelier than
    not."""
    words = f"{differ}: with weights or k_public unknown nothing is certain"
    return replace(
        found,
        confidence=np.minimum(found.confidence, 0.5),
        certain=np.zeros(len(found.indices), bool),
        warning="; ".join(w for w in (found.warning, words) if w),
    )
