"""From trials to words: the risk of every record, and the verdict, which says what was measured and
nothing beyond."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unveil.auditing.curve import Points
from unveil.auditing.model_check import ModelCheck
from unveil.auditing.result import CurvePoint, Level, RecordRisk, Verdict
from unveil.auditing.risks import APPROXIMATE, MOST, NOT, OUTCOMES
from unveil.auditing.trials import Attacker, Trial
from unveil.data import Dataset

FEW = 0.1
"""Up to this share of exact records the verdict is "partly"."""


def record_risks(
    data: Dataset, chosen: NDArray[np.int64], points: Points, high: int
) -> tuple[RecordRisk, ...]:
    """Every record as the first draw of all `high` encodings shows it; `chosen` (m, k): the records
    of each encoding."""
    main = points[high][0]
    n = len(data.names)
    uses = np.array([np.count_nonzero((chosen == i).any(axis=1)) for i in range(n)])
    came = {m: points[m][0].outcome > NOT for m in sorted(points)}
    risks = []
    for i in range(n):
        back = [m for m, outcome in came.items() if outcome[i]]
        seen = np.isfinite(main.error[i])
        risks.append(
            RecordRisk(
                index=i,
                name=data.names[i],
                outcome=OUTCOMES[main.outcome[i]],  # type: ignore[arg-type]
                status=main.status[i] or "unresolved",
                error=float(main.error[i]) if seen else None,
                correlation=float(main.correlation[i]) if seen else None,
                encodings=int(uses[i]),
                from_m=back[0] if back else None,
                reason=_reason(main, i, int(uses[i])),
            )
        )
    return tuple(risks)


def _reason(main: Trial, i: int, uses: int) -> str:
    if uses == 0:
        return "no encoding uses it"
    if main.reasons[i]:
        return main.reasons[i]
    if uses == 1:
        return "appears in one encoding only"
    return "no recovered vector is near it" if any(main.status) else main.explanation


def verdict(
    records: Sequence[RecordRisk],
    curve: Sequence[CurvePoint],
    main: Trial,
    blind: Trial,
    attacker: Attacker,
    check: ModelCheck,
    m: int,
    *,
    signed: bool,
    wrong: int,
) -> Verdict:
    """The level is that of what the blind attacker got; what takes being told the overlaps is never
    more than "partly"."""
    n = len(records)
    exact = sum(record.outcome == "exact" for record in records)
    almost = sum(record.outcome == "approximate" for record in records)
    level: Level = "nothing"
    if exact + almost:
        level = "leaks" if exact > FEW * n and attacker == "blind" else "partly"
    counts = _counts(exact, almost, n)
    if level == "nothing":
        headline = f"Nothing recovered: no attack got one of {n} records from {m:,} encodings. This is no proof of safety."
    elif attacker == "told":
        headline = f"Do not rely on this: {counts} from {m:,} encodings once it is known which encodings share a record."
    else:
        headline = f"Do not release: {counts} from {m:,} encodings."
    sentences = []
    if level != "nothing":
        sentences.append(_since(curve, n))
    if attacker == "told":
        got = int((blind.outcome > NOT).sum())
        alone = f"{got} of {n}" if got else "none"
        sentences.append(
            f"From the encodings alone the attack got {alone}. Which encodings share a record was told to it; published "
            "attacks on images learn this from the encodings."
        )
    if exact and not signed:
        sentences.append(
            "Exact is up to one sign per pixel that all records share; relative signs are recovered."
        )
    if almost:
        sentences.append(
            f"Approximate means a correlation above {APPROXIMATE} with the true record, the mean of all records taken off, "
            f"or {MOST:.0%} of the pixels that set it apart right."
        )
    sentences.append(check.sentence())
    if not check.independent:
        sentences.append(
            "Counts are measured against the true records; the attack's own certificate does not cover such data."
        )
    if wrong:
        sentences.append(f"{wrong} vectors that the attack called verified were wrong.")
    if level != "nothing" and exact + almost < n:
        sentences.append("Records that were not recovered are not proved safe.")
    return Verdict(level, headline, tuple(sentences))


def _counts(exact: int, almost: int, n: int) -> str:
    come = "comes" if n == 1 else "come"
    if not almost:
        return f"{exact} of {n} records {come} back exactly"
    if not exact:
        return f"{almost} of {n} records {come} back approximately"
    return f"{exact} of {n} records {come} back exactly and {almost} more approximately"


def _since(curve: Sequence[CurvePoint], n: int) -> str:
    """From how many encodings on: the first, half of the records, nearly all."""
    first = next((p.m for p in curve if p.exact + p.approximate > 0), None)
    half = next((p.m for p in curve if p.exact + p.approximate >= 0.5), None)
    if first is None:
        return "In the mean over draws nothing came back."
    text = f"The first records come back from about {first:,} encodings on"
    if first == curve[0].m:
        text = f"Already {first:,} encodings, the fewest tried, give records away"
    return text + (
        f", half of them from about {half:,} on." if half is not None and half != first else "."
    )
