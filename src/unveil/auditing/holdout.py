"""A control that never was in the release: some records are kept out, the others are encoded and
attacked in the same way, and what came back is held against those that were kept out.

Whatever "comes back" of them comes by chance, or because records are alike: it is no leak of the
release, and risk counts from there.
"""

from __future__ import annotations

from dataclasses import replace

from unveil.auditing.as_found import COPIES, copies
from unveil.auditing.release import by_encoder
from unveil.auditing.risks import ALMOST, assess
from unveil.auditing.seed_lint import Encoder
from unveil.auditing.trial import Arm
from unveil.auditing.trials import Laboratory
from unveil.checks import InputError

EVERY = 5
"""Every fifth different record is kept out: enough to see chance, few enough to leave the attack
what it needs."""
FEWEST = 15
"""Different records from which on some can be spared: three of them are kept out then."""


def held_out(
    lab: Laboratory, arm: Arm, m: int, encoder: Encoder | None = None, least: int = ALMOST
) -> float | None:
    """Share of records kept out of a release of m encodings that `arm` finds all the same; None
    where it cannot be tried. least: the outcome from which on one counts, that of the records that
    were in the release."""
    release = lab.release
    first, group = lab.groups
    if len(first) < FEWEST or (release.make is not None and encoder is None):
        return None
    # 1. Equal records stay together: one that is encoded is no control for the other.
    out = group % EVERY == EVERY - 1
    kept, truth = release.private[~out], release.private[first[out[first]]]
    make = None if encoder is None else by_encoder(encoder, kept, release.public, release.seed)
    # 2. As many encodings for each record as in the release.
    top = max(release.scheme.k_private + 2, round(m * len(kept) / len(release.private)))
    other = Laboratory(
        replace(release, private=kept, top=top, make=make, draws=None, _drawn={}),
        lab.relative_tolerance,
        lab.pixel_rms,
        memory_limit=lab.memory_limit,
    )
    # 3. The same attack, held against records it cannot have seen.
    tolerance = lab.relative_tolerance
    try:
        encodings = other.encodings(0, top, arm.scheme, arm.view)
        if arm.attack == COPIES:
            risks = copies(encodings, truth, relative_tolerance=tolerance)[1]
        else:
            recovery, _ = other.recovery(encodings, 0, arm, lab.progress)
            free = not release.stated or arm.scheme != release.scheme
            risks = assess(recovery, truth, relative_tolerance=tolerance, free_scale=free)
    except InputError:
        return None  # an encoder may need all records: then there is no such control
    return float((risks.outcome >= least).mean())
