"""What the natural-image attack found, as a recovery: images, members, weights, and how sure each
image is. Nothing is verified."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from unveil.encode.units import PLAIN, Units
from unveil.encodings import Encodings
from unveil.images.likeness import Clues
from unveil.images.recognition import WHITE, recognition
from unveil.images.task import RoundState
from unveil.parallel import Stopwatch
from unveil.records import UNRESOLVED, Recovery
from unveil.scheme import Scheme

UNTOLD = (
    "; public images are white noise: with crops, or other than two private images in an encoding, "
    "this attack does not work, and that nothing came back says nothing of what leaks"
)
"""What is said where nothing tells how like the private images are."""


def as_recovery(
    attack: str,
    encodings: Encodings,
    scheme: Scheme,
    unit: Units,
    state: RoundState,
    signs: Clues,
    signed: bool,
    clock: Stopwatch,
    aside: str = "",
    mirrored: bool = False,
) -> Recovery:
    """signed: negatives are told from images; aside: what a reader must know besides; mirrored:
    images were mirrored at random, so that nobody can tell which way round they were."""
    # 1. Who is in which encoding, and how sure each image is.
    weighing, n = state.weighing, len(state.images)
    m, k = weighing.members.shape
    rows = np.repeat(np.arange(m), k)
    places = (rows, weighing.members.ravel())
    sure = recognition(signs)
    seen = round(float(sure.probability.sum()))
    evidence = {
        "likeness": sure.likeness.tolist(),
        "likeness_low": sure.low.tolist(),
        "likeness_high": sure.high.tolist(),
        "recognisable": sure.probability.tolist(),
        "misfit": signs.misfit.tolist(),
        "agreement": signs.agreement.tolist(),
        "encodings": signs.encodings.tolist(),
        "again": signs.again.tolist(),
        "weighting": scheme.weighting,
        "units": unit.name,
    }
    # 2. What a reader must know besides.
    if unit.name != PLAIN.name:
        aside += f"; pixels were mixed in other units ({unit.name}), and come back in [-1, 1]"
    if state.polarity is not None:
        evidence["polarity"] = state.polarity
    untold = signs.rough > WHITE and signs.certain is None
    if untold:
        aside += UNTOLD
    elif not signed or state.polarity is None:
        aside += "; a negative counts as recognisable, and which it is was not settled"
    if mirrored:
        evidence["mirrored"] = True
        aside += "; which way round an image was is not in the encodings"
    if state.part is not None:
        evidence["public_images_found"] = float((state.part.indices >= 0).mean())
    # 3. Pixels as they are shown. Nothing is verified.
    assert encodings.shape is not None
    return Recovery(
        vectors=np.clip(unit.to_pixels(state.images, encodings.shape), -1, 1),
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=signed,
        members=sparse.csr_array((np.ones(m * k, bool), places), shape=(m, n)),
        residual=signs.misfit,
        reasons=tuple(
            "how like the private image it is is not known"
            if untold
            else f"an SSIM of about {value:.1f} is to be expected, {low:.1f} to {high:.1f} in "
            "eight of ten cases"
            for value, low, high in zip(sure.likeness, sure.low, sure.high, strict=True)
        ),
        attack=attack,
        explanation=f"{n} private images from {m} encodings, about {seen} of them recognisable; "
        f"none is exact{aside}",
        seconds=clock.seconds,
        evidence=evidence,
        weights=sparse.csr_array((weighing.best.ravel(), places), shape=(m, n)),
    )
