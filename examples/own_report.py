"""A report on an attack of your own: fill an Audit, write the page and the JSON. Usage:
own_report.py FOLDER"""

import sys
from pathlib import Path

import unveil
from unveil.auditing.result import Audit, RecordRisk, Verdict
from unveil.report import write_json, write_report

folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
scheme = unveil.Scheme(k_private=2)
sim = unveil.simulate(scheme, n_private=40, m=280, d=300, rng=0)
recovery = unveil.recover(sim.encodings, rng=0)
scores = unveil.score(recovery, sim.private)

# The recovered vector of each private one, where there is a verified one that equals it.
found = {int(j): i for i, j in enumerate(scores.matches) if j >= 0 and recovery.verified[i]}
uses = [int((sim.selection.private == j).any(axis=1).sum()) for j in range(len(sim.private))]
records = tuple(
    RecordRisk(
        j,
        f"vector {j}",
        "exact",
        values=300,
        open=0,
        error=float(scores.error[found[j]]),
        correlation=1.0,
        encodings=uses[j],
        from_m=280,
        status="verified",
        reason="re-encoding agrees",
    )
    if j in found
    else RecordRisk(
        j,
        f"vector {j}",
        "not recovered",
        values=0,
        open=0,
        error=None,
        correlation=None,
        encodings=uses[j],
        from_m=None,
        status="",
        reason="no verified vector equals it",
    )
    for j in range(len(sim.private))
)
audit = Audit(
    verdict=Verdict(
        "leaks" if found else "nothing",
        f"{len(found)} of {len(records)} vectors come back exactly.",
    ),
    scheme={"k_private": 2, "weighting": scheme.weighting},
    data={"source": "Gaussian", "n_private": 40, "d": 300},
    m=280,
    attack=recovery.attack,
    explanation=recovery.explanation,
    records=records,
    run={"seed": 0},
)
print(
    "Written:",
    write_report(audit, folder / "report.html"),
    write_json(audit, folder / "report.json"),
)
