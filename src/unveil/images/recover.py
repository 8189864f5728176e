"""`recover_images`: what goes in is checked and brought to one unit, what comes out says how sure
it is. The attack itself is in `rounds`, its parts in the files named there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from unveil.checks import InputError, Rng, as_vectors, child, is_count, root
from unveil.encode.units import Units, settle_units
from unveil.encodings import Encodings
from unveil.engine.blocks import Stopwatch
from unveil.engine.blocks import memory_limit as settle_limit
from unveil.images.alignment import window_numbers
from unveil.images.likeness import Clues, clues_of, recognise
from unveil.images.memberships import lawful_labels
from unveil.images.model import Copies, Floats, image_prior, mirror
from unveil.images.rounds import Found, Schedule, Task, alternate
from unveil.images.similarity import similarity
from unveil.images.weigh import WeightLaw
from unveil.records import UNRESOLVED, Progress, Recovery


def recover_images(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    like: ArrayLike | None = None,
    private_like: ArrayLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    crops: int = 0,
    labels: ArrayLike | None = None,
    units: str | tuple[ArrayLike, ArrayLike] | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
    schedule: Schedule | None = None,
) -> Recovery:
    """Every private image that encodings of natural images show, about as it was.

    An encoding is |Σ λ_j x_j + Σ μ_l p_l|: k_private private images and k_public public ones with
    weights of its own. Nothing is trained, and nothing is exact: images come back unresolved, each
    with the SSIM to expect.

    Parameters
    ----------
    encodings : Encodings
        With `image_shape`; labels, where they were released, are used. Weights of any law of the
        scheme; "unknown": the law that fits best is taken.
    public : array of shape (items, d)
        The candidates for public images themselves, where they are known.
    like : array of shape (items, d)
        Other images like the public ones, some hundred or more; without them and `public` natural
        images in general are assumed. Images come in [−1, 1], [0, 1] or as bytes.
    private_like : array of shape (items, d)
        Other images of the kind of the private ones, such as other faces.
    n_private : int
        How many private images there are; None: as many as stand out.
    flips : bool
        Images were mirrored at random before they were mixed.
    crops : int
        They were padded by so many black pixels and cut to size at a random place.
    labels : array of shape (m, classes)
        Instead of those of the encodings: Σ λ·onehot over the private images of each.
    units : str or (mean, std)
        In which pixels were mixed (`encode.units`); None: those that fit best.
    rng : int, Generator or None
        The same number gives the same bytes.
    memory_limit : int
        Bytes that may be used; None: half of what is free.
    progress : function
        Called with stage, done and total.
    schedule : Schedule
        How rounds run, for those who study them.

    Returns
    -------
    Recovery
        Images in [−1, 1]. `evidence` has of each: "likeness" with "likeness_low" and
        "likeness_high", "recognisable" (the probability of an SSIM above 0.5), and the clues.

    Raises
    ------
    InputError
        Where the encodings are no images, arguments contradict each other or memory does not do.

    Notes
    -----
    Memory: two bytes for each pair of encodings, twice that with flips, and about five times the
    encodings.
    """
    # 1. What is refused.
    scheme, shape = encodings.scheme, encodings.image_shape
    if shape is None:
        raise InputError(
            "attack='natural' needs to know where pixels lie: "
            "give Encodings(image_shape=(height, width[, channels]))"
        )
    if not scheme.k_private:
        raise InputError("k_private=0: encodings without private images hide nothing to find")
    if n_private is not None and not is_count(n_private):
        raise InputError(f"n_private={n_private!r}: give the number of private images")
    if n_private is not None and n_private < scheme.k_private:
        raise InputError(
            f"n_private={n_private}: an encoding mixes {scheme.k_private} private images; "
            "give that many or more"
        )
    copies = Copies(shape, bool(flips), crops)
    if crops:
        copies.crops  # noqa: B018  a padding that is no number of pixels is refused here
    _must_fit(encodings, copies, settle_limit(memory_limit))
    # 2. One unit for all images; what they look like, and the law of their weights.
    seed, clock = root(rng), Stopwatch()
    images = {"like": like, "public": public if scheme.k_public else None}
    given, unit = settle_units(
        {name: _vectors(x, name, encodings.d)
         for name, x in (images | {"private_like": private_like}).items()},
        encodings.values, scheme, shape, units, child(seed, "units"),
    )  # fmt: skip
    if crops:
        black = unit.of_pixels(np.full((1, encodings.d), -1, np.float32), shape)[0]
        copies = Copies(shape, bool(flips), crops, black[: copies.crops.sides[2]])
    with clock("prior"):
        sample = given["public"] if given["like"] is None else given["like"]
        own = given["private_like"]
        prior = image_prior(shape, own if own is not None and not scheme.k_public else sample)
        centre = prior.mean if own is None else image_prior(shape, own, name="private_like").mean
    law = WeightLaw.of(scheme, child(seed, "law"))
    released = encodings.labels
    if labels is not None:
        released = Encodings(encodings.values, scheme, None, shape, labels).labels
    known = None if released is None else lawful_labels(released, scheme.k_private, law.mean)
    candidates = given["public"]
    if candidates is not None and copies.symmetric:
        candidates = np.concatenate([candidates, mirror(candidates, shape)])
    Y = unit.of_encodings(encodings.magnitudes())
    task = Task(Y, scheme, law, prior, centre, copies, known, candidates)
    # 3. Who shares with whom; signs, images and weights in turn; how good each image is.
    with clock("similarity"):
        alike = similarity(Y, copies)
    with clock("rounds"):
        found = alternate(
            task, alike, n_private, child(seed, "rounds"), schedule=schedule, progress=progress
        )
    del alike
    with clock("likeness"):
        clues = clues_of(found, child(seed, "halves"))
    asides = []
    if released is not None and known is None:
        asides.append("labels are not mixtures of the classes of an encoding's images, not used")
    return _recovery(encodings, found, clues, unit, own is not None, clock, asides)


def _must_fit(encodings: Encodings, copies: Copies, limit: int) -> None:
    """Similarities of all pairs, and arrays of the size of the encodings."""
    m, d = encodings.m, encodings.d
    pairs = 16 if copies.reach else 2 * copies.count
    each = 4 * (5 * d + (window_numbers(copies.shape) if copies.reach else 0))
    needed = pairs * m**2 + each * m + 8 * d**2
    if needed > limit:
        raise InputError(
            f"{m:,} encodings of {d:,} pixels need about {needed / 2**30:.1f} GiB, more than the "
            "memory limit: attack fewer of them, or raise memory_limit"
        )


def _vectors(images: Any, name: str, d: int) -> Floats | None:
    """Images (items, d), as many pixels as encodings have."""
    if images is None:
        return None
    vectors = as_vectors(images, name)
    if vectors.shape[1] != d:
        raise InputError(
            f"{name} images have {vectors.shape[1]} pixels, encodings {d}: bring them to the "
            "same size"
        )
    return vectors


def _recovery(
    encodings: Encodings,
    found: Found,
    clues: Clues,
    unit: Units,
    told: bool,
    clock: Stopwatch,
    asides: list[str],
) -> Recovery:
    """Nothing is verified. told: like private images were given, which tell negatives."""
    # 1. Who is in which encoding, and how sure each image is.
    weighing, task, n = found.weighing, found.task, len(found.images)
    m, k = weighing.members.shape
    places = (np.repeat(np.arange(m), k), weighing.members.ravel() % n)
    sure = recognise(clues)
    evidence: dict[str, Any] = {
        "likeness": sure.likeness.tolist(),
        "likeness_low": sure.low.tolist(),
        "likeness_high": sure.high.tolist(),
        "recognisable": sure.probability.tolist(),
        "misfit": clues.misfit.tolist(),
        "agreement": clues.agreement.tolist(),
        "encodings": clues.encodings.tolist(),
        "again": clues.again.tolist(),
        "sign": clues.sign.tolist(),
        "weighting": task.scheme.weighting,
        "units": unit.name,
        "epochs": found.epochs is not None,
    }
    # 2. What a reader must know besides.
    if unit.name != "[-1,1]":
        asides.append(f"pixels were mixed in other units ({unit.name}), and come back in [-1, 1]")
    signed = task.prior.known or told
    if not signed:
        asides.append("a negative counts as recognisable, and which it is was not settled")
    if task.copies.flips:
        evidence["mirrored"] = True
        asides.append("which way round an image was is not in the encodings")
    if found.listed is not None:
        evidence["public_images_found"] = float((found.listed >= 0).mean())
    # 3. Pixels as they are shown.
    shape = task.copies.shape
    seen = round(float(sure.probability.sum()))
    words = f"{n} private images from {m} encodings, about {seen} of them recognisable"
    return Recovery(
        vectors=np.clip(unit.to_pixels(found.images, shape), -1, 1),
        status=np.full(n, UNRESOLVED, dtype="<U10"),
        signed=signed,
        members=sparse.csr_array((np.ones(m * k, bool), places), shape=(m, n)),
        residual=clues.misfit,
        reasons=tuple(
            f"an SSIM of about {value:.1f} is to be expected, {low:.1f} to {high:.1f} in eight of "
            "ten cases"
            for value, low, high in zip(sure.likeness, sure.low, sure.high, strict=True)
        ),
        attack="natural",
        explanation="; ".join([f"{words}; none is exact", *asides]),
        seconds=clock.seconds,
        evidence=evidence,
        weights=sparse.csr_array((weighing.best.ravel(), places), shape=(m, n)),
    )
