"""A recovery and its scores in words and in plain facts, as terminal and JSON show them: verdict
first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from unveil.images.likeness import RECOGNISABLE
from unveil.records import UNRESOLVED, VERIFIED, Recovery, Scores
from unveil.scoring.images import ChallengeScores, ImageScores

REASONS = 5
"""Kinds of doubt listed in a summary."""
NEARLY_ALL = 0.95
"""Share of the estimated number of vectors that counts as all: the estimate is no better."""


def recovery_facts(recovery: Recovery) -> dict[str, Any]:
    count = int(recovery.verified.sum())
    # An image attack proves nothing exactly: its own estimate of likeness stands in.
    probable = np.asarray(recovery.evidence.get("recognisable", []))
    seen = round(float(probable.sum()))
    near = len(_errors(recovery))
    if len(probable):
        verdict = (
            f"About {seen} of {len(probable)} private images come back recognisably, by the "
            "attack's own estimate, a negative included; none is exact."
        )
    elif count:
        verdict = f"{_vectors(count)} recovered and verified, {_signs(recovery)}."
    elif near:
        verdict = f"Recovered up to noise, none verified: {recovery.explanation}."
    else:
        verdict = f"No private vector verified: {recovery.explanation}."
    return {
        "verdict": verdict,
        "attack": recovery.attack,
        "verified": count,
        "recognisable": seen,
        "approximate": near,
        "signed": recovery.signed,
        "explanation": recovery.explanation,
        "status": recovery.status.tolist(),
        "reasons": list(recovery.reasons),
        "encodings_used": np.diff(recovery.members.tocsc().indptr).tolist(),
        "residual": recovery.residual.tolist(),
        "seconds": dict(recovery.seconds),
        "evidence": dict(recovery.evidence),
        "summary": summary(recovery),
    }


def summary(recovery: Recovery) -> list[str]:
    """What was recovered, with what evidence, what was not and why: for a reader who has no truth
    to compare with."""
    evidence, m = recovery.evidence, recovery.members.shape[0]
    out = []
    # Images are about right at best: what is said besides takes the place of what is explained.
    if "recognisable" in evidence:
        out.append(f"{recovery.explanation[:1].upper()}{recovery.explanation[1:]}.")
    elif len(recovery):
        # Where the attack did not count, an encoding with members is one it explains.
        explained = evidence.get("encodings_explained")
        if explained is None:
            explained = int((np.diff(recovery.members.tocsr().indptr) > 0).sum())
        text = f"{explained} of {m} encodings are reproduced by the vectors found"
        if evidence.get("unknowns"):
            counts = f"{evidence['equations']:,} equations for {evidence['unknowns']:,} unknowns"
            # A floral is read from few of the encodings that hold its vectors.
            few = evidence["equations"] < explained * recovery.vectors.shape[1]
            held = f"{explained} of {m} encodings hold vectors found, which come from {counts}"
            text = held if few else f"{text}: {counts}"
        out.append(text + ".")
        if explained < m:
            out.append(
                f"{m - explained} encodings are not explained: what only they use is not among "
                "the vectors."
            )
    # Grouped by reason: a hundred vectors in doubt for one cause are one line.
    errors = _errors(recovery)
    if errors:
        low, high = min(errors.values()), max(errors.values())
        range_ = f"±{low:.2g}" if f"{low:.2g}" == f"{high:.2g}" else f"±{low:.2g} to ±{high:.2g}"
        out.append(f"{len(errors)} {UNRESOLVED}: known to about {range_} per pixel.")
    reasons = Counter(
        pair
        for i, pair in enumerate(zip(recovery.status.tolist(), recovery.reasons, strict=True))
        if i not in errors
    )
    doubtful = [
        (count, status, why) for (status, why), count in reasons.most_common() if status != VERIFIED
    ]
    for count, status, why in doubtful[:REASONS]:
        out.append(f"{count} {status}: {why}.")
    if len(doubtful) > REASONS:
        out.append(
            f"{sum(count for count, _, _ in doubtful[REASONS:])} more that are not verified, "
            "each with its reason."
        )
    estimate = evidence.get("estimated_n_private")
    if estimate and np.isfinite(estimate) and len(recovery) < NEARLY_ALL * estimate:
        out.append(
            f"{len(recovery)} vectors were found; by how much the encodings have in common there "
            f"may be about {estimate:.0f}. That is an estimate, and can be far off."
        )
    return out


def _errors(recovery: Recovery) -> dict[int, float]:
    """The standard error of each vector that is known up to noise, by its number."""
    known = recovery.evidence.get("standard_error", [])
    if len(known) != len(recovery):
        return {}
    status = recovery.status.tolist()
    return {i: e for i, e in enumerate(known) if e is not None and status[i] == UNRESOLVED}


def score_facts(recovery: Recovery, scores: Scores) -> dict[str, Any]:
    total = scores.exact + scores.missing
    # The worst first: one wrong vector outweighs all that are right.
    if scores.wrong:
        verdict = (
            f"WRONG: {scores.wrong} of {_vectors(int(recovery.verified.sum()))} verified equal "
            "none in the truth; if this truth is what was encoded, trust nothing here and report a "
            "bug."
        )
    elif scores.exact:
        verdict = (
            f"{scores.exact} of {_vectors(total)} recovered exactly, {_signs(recovery)}; none "
            "wrong."
        )
    else:
        verdict = f"0 of {_vectors(total)} recovered exactly; none wrong."
    arrays = {name: getattr(scores, name).tolist() for name in ("matches", "nearest", "error")}
    counts = {name: getattr(scores, name) for name in ("exact", "wrong", "missing", "tolerance")}
    return {"verdict": verdict, **counts, **arrays}


def image_facts(scores: ImageScores) -> dict[str, Any]:
    n, seen = len(scores.ssim), round(scores.share(RECOGNISABLE) * len(scores.ssim))
    verdict = (
        f"{seen} of {n} images have an SSIM above {RECOGNISABLE}; mean SSIM "
        f"{scores.mean_ssim:.3f}, "
    )
    return {
        "verdict": f"{verdict}mean PSNR {scores.mean_psnr:.1f} dB.",
        "mean_ssim": scores.mean_ssim,
        "mean_psnr": scores.mean_psnr,
        "recognisable": seen,
        **{name: getattr(scores, name).tolist() for name in ("matches", "ssim", "psnr")},
    }


def challenge_facts(scores: ChallengeScores) -> dict[str, Any]:
    return {
        "verdict": (
            f"As the challenge scores: Max_SSIM {scores.max_ssim:.3f}, Mean_SSIM "
            f"{scores.mean_ssim:.3f}, Min_L2 {scores.min_l2:.3f}, Mean_L2 {scores.mean_l2:.3f}."
        ),
        **vars(scores),
    }


def _vectors(count: int) -> str:
    return f"{count} private vector{'' if count == 1 else 's'}"


def _signs(recovery: Recovery) -> str:
    return (
        "with their signs" if recovery.signed else "up to one sign per pixel that all of them share"
    )


def plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: what is not a number is null."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
