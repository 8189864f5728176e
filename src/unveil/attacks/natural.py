"""Natural images: private images out of encodings as InstaHide released them, with no training.

    1  K ← products window by window         which encodings are alike (`gram.windows`)
    2  p, λ ← clusters, then posteriors      who mixes whom, softly (`images.memberships`)
    3  x ← cross terms, pixel by pixel       values up to a sign per pixel (`images.cross_terms`)
       x ← signs from neighbouring pixels    (`images.pixel_signs`)
       law ← shape of weights, some rounds   where it is unknown (`images.weight_law`)
    4  repeat (`images.rounds`):
         E, x ← anneal                       signs as smooth fields (`images.sign_fields`)
         λ ← least squares on E              members and weights (`images.reweigh`)
         bad images start again
    5  x ← what rows of one epoch share      taken out (`images.shared_public`)

Rows that come epoch by epoch have each image k times in an epoch, and share its public images: who
is in which row is matched then (`images.epochs`). Whether they do is found out.

Labels, where released, tie members and weights. Public images, where the candidates are known, are
found in what is left of signed encodings, and taken out (`images.public_part`). Nothing here is
exact: images come back unresolved, each with the likeness to expect (`images.likeness`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import InputError, as_vectors, is_count
from unveil.encodings import Encodings
from unveil.gram.moved_windows import window_size
from unveil.gram.stationary import stationary_energies
from unveil.gram.windows import window_energies
from unveil.images.cropped import cropping_of, from_crops
from unveil.images.findings import as_recovery
from unveil.images.labels import lawful_labels
from unveil.images.likeness import Clues, clues_of_likeness, roughness, white_clues
from unveil.images.memberships import expected_weights, image_memberships
from unveil.images.mirrored import merge_mirrored, mirror
from unveil.images.polarity import SURE
from unveil.images.prior import ImagePrior, image_prior, smooth_prior
from unveil.images.recognition import WHITE
from unveil.images.rounds import alternate, take_out_public
from unveil.images.row_order import order_of_noise
from unveil.images.shared_public import without_shared
from unveil.images.start import start_images
from unveil.images.task import ImageTask, RoundState, WeightLaw
from unveil.images.units import settle_units
from unveil.images.weight_law import likeliest_law
from unveil.images.white_rounds import white_rounds
from unveil.parallel import Stopwatch
from unveil.parallel import memory_limit as settle_limit
from unveil.records import Progress, Recovery
from unveil.seeds import Rng, child, root

NAME = "natural"
LOOK = 3
"""Rounds after which the law of weights is told, where it is unknown: weights are good enough then,
and the laws far apart."""
UNLEARNED = "; how sure each is was learned on crops of photographs alone, and may be wrong"
"""What a recovery of cropped images says besides."""
SMALL = (
    "; how sure each is was learned on thirty images of 32×32 pixels: of fewer or smaller ones it "
    "claims too much"
)
"""What a recovery among public white noise says besides: of ten images of 20×20 eight were claimed,
and one was right."""
UNUSED = "; labels are not mixtures of the classes of an encoding's images, and were not used"
"""What a recovery says besides where labels do not fit the scheme (`images.labels`)."""
MATRICES, CROPPED, ARRAYS = 1, 5, 4
"""m×m matrices, those of crops, and m×d arrays, in single precision, that are held at once. The one
stands for two of half the size: cosines, and what known images leave of them. Crops have all their
windows besides (`gram.moved_windows`)."""
Floats = NDArray[np.float32]


def natural(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    like: ArrayLike | None = None,
    private_like: ArrayLike | None = None,
    n_private: int | None = None,
    flips: bool = False,
    crops: int = 0,
    units: str | tuple[ArrayLike, ArrayLike] | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private image that the encodings show, about as it was, with the likeness to expect.

    public: the candidates themselves, where they are known; like: other images of that kind;
    neither: natural images in general
    private_like: other images of the kind of the private ones, such as other faces
    n_private: how many private images there are; None: as many as clusters are found
    flips: images were mirrored at random before they were mixed
    crops: they were padded by so many black pixels and cut to size at a random place
    units: in which pixels were mixed (`encode.units`): a name or (mean, std); None: found out

    Images are given in [−1, 1], [0, 1] or as bytes, and come back in [−1, 1].
    """
    # 1. What is refused.
    shape, scheme = encodings.shape, encodings.scheme
    if shape is None:
        raise InputError(
            "attack='natural' needs to know where pixels lie: "
            "give Encodings(image_shape=(height, width[, channels]))"
        )
    channels = shape[2] if len(shape) > 2 else 1
    if not scheme.k_private:
        raise InputError("k_private=0: encodings without private images hide nothing to find")
    if n_private is not None and not is_count(n_private):
        raise InputError(f"n_private={n_private!r}: give the number of private images")
    if n_private is not None and n_private < scheme.k_private:
        raise InputError(
            f"n_private={n_private}: an encoding mixes {scheme.k_private} private images; "
            "give that many or more"
        )
    matrices = CROPPED if crops else MATRICES
    of_each = ARRAYS * encodings.d + (window_size(shape) if crops else 0)
    needed = 4 * (matrices * encodings.m**2 + encodings.m * of_each)
    if needed > settle_limit(memory_limit):
        raise InputError(
            f"{encodings.m:,} encodings of {encodings.d:,} pixels need about "
            f"{needed / 2**30:.1f} GiB, more than the memory limit: attack fewer of them, or raise "
            "memory_limit"
        )
    if crops and scheme.weighting == "unknown":
        raise InputError("crops= needs the law of weights: give Scheme(weighting=)")
    # 2. What images look like, and the law of their weights. An image and its mirror image are two.
    seed = root(rng)
    clock = Stopwatch()
    total = None if n_private is None else (1 + (flips and not crops)) * n_private
    told = {
        "like": like,
        "public": public if scheme.k_public else None,
        "private_like": private_like,
    }
    given, unit = settle_units(
        {name: _vectors(x, name, encodings.d) for name, x in told.items()},
        encodings.values, scheme, shape, units, child(seed, "units"),
    )  # fmt: skip
    candidates, own = given["public"], given["private_like"]
    sample = candidates if given["like"] is None else given["like"]
    if candidates is not None and flips and not crops:
        candidates = np.concatenate([candidates, mirror(candidates, shape)])
    with clock("prior"):
        theirs = None if own is None else image_prior(shape, own, name="private_like")
        prior = theirs if theirs and not scheme.k_public else image_prior(shape, sample)
        if not scheme.k_public:  # like images can only be like the private ones
            theirs = prior
    law = WeightLaw.of(scheme, child(seed, "law"))
    labels = encodings.labels
    if labels is not None:
        labels = lawful_labels(labels, scheme.k_private, law.mean)
    aside = UNUSED if encodings.labels is not None and labels is None else ""
    task = ImageTask(
        unit.of_encodings(encodings.magnitudes()),
        scheme,
        law,
        prior,
        labels,
        None if theirs is None else theirs.mean,
        shape=shape,
    )
    if crops:
        black = unit.of_pixels(np.full((1, encodings.d), -1, np.float32), shape)[0]
        task = replace(task, cropping=cropping_of(shape, crops, flips, black))
        cropped = from_crops(task, total, clock, progress)
        if cropped is None:
            return _nothing(encodings, clock)
        task, state = cropped
        with clock("likeness"):
            signs = clues_of_likeness(task, state, state.weighing, child(seed, "halves"), channels)
        state = _without_shared(task, state, clock, progress)
        return as_recovery(
            NAME, encodings, scheme, unit, state, signs, True, clock, UNLEARNED + aside, flips
        )
    # 3. Who mixes whom, softly: from squares of products, which do not depend on signs.
    white = task.public and scheme.k_private == 2 and roughness(prior) > WHITE
    with clock("similarity"):
        # Among white noise windows tell less than squares whitened by the spectrum.
        alike = (stationary_energies if white else window_energies)(task.Y, shape)
    with clock("memberships"):
        draw = child(seed, "clusters")
        epochs = None
        if white and n_private is not None and task.labels is None and not flips:
            epochs = order_of_noise(task.Y, n_private, scheme.k_private)
        found = image_memberships(
            alike,
            scheme.k_private,
            total,
            task.law.sample,
            labels=task.labels,
            ordered=not flips,
            epochs=epochs,
            rng=draw,
            progress=progress,
        )
    if found is None:
        return _nothing(encodings, clock)
    task = replace(task, alike=alike, epochs=found.epochs)
    del alike  # with the rounds it goes: no other matrix is as large
    first, second = expected_weights(found, task.public)
    weights: sparse.csr_array = sparse.csr_array(first)
    squares: sparse.csr_array = sparse.csr_array(second)
    # Among public white noise only the private images are smooth: rounds of their own.
    if white:
        with clock("rounds"):
            size = total or len(first.T)
            state, sure, again = white_rounds(
                task, weights, squares, size, child(seed, "white"), progress
            )
        signs = white_clues(task, state, sure, again, channels)
        if flips:
            state, signs = _without_mirrors(state, signs, shape, smooth_prior(shape), clock)
        aside = SMALL + aside
        return as_recovery(
            NAME, encodings, scheme, unit, state, signs, own is not None, clock, aside, flips
        )
    # 4. Images to start from.
    with clock("start"):
        images = start_images(task, weights, squares, theirs, child(seed, "start"))
        # Images no cluster was found for have a place all the same: they may show themselves once
        # signs are known.
        missing = max(0, (total or 0) - len(images))
        images = np.concatenate([images, np.repeat(task.start[None], missing, axis=0)])
        weights, squares = (
            sparse.csr_array(sparse.hstack([w, sparse.csr_array((encodings.m, missing))]))
            for w in (weights, squares)
        )
    # 5. The law of weights, where it is unknown: some rounds with all laws together show it.
    law_given = scheme.weighting != "unknown"
    if not law_given:
        with clock("law"):
            look = alternate(
                task, weights, squares, images, child(seed, "look"), progress, rounds=LOOK
            )
            scheme = likeliest_law(
                look.weighing.best, look.weighing.misfit, scheme, child(seed, "laws")
            )
            task = replace(task, scheme=scheme, law=WeightLaw.of(scheme, child(seed, "law")))
            weights, squares, images = look.weighing.weights, look.weighing.squares, look.images
    # 6. Signs and weights in turn.
    with clock("rounds"):
        state = alternate(task, weights, squares, images, child(seed, "rounds"), progress)
        task = replace(task, alike=None)
    if not law_given:  # weights are better now than after the first rounds, and may say otherwise
        scheme = likeliest_law(
            state.weighing.best, state.weighing.misfit, encodings.scheme, child(seed, "laws")
        )
    # 7. Public images, where the candidates are known.
    if candidates is not None:
        with clock("public images"):
            state = take_out_public(task, state, candidates, progress)
    # 8. How good each image is likely to be, by clues that know nothing of what follows; mirror
    #    images become one. Rows that come epoch by epoch share public images, which are taken out.
    with clock("likeness"):
        signs = clues_of_likeness(task, state, state.weighing, child(seed, "halves"), channels)
    if candidates is None:
        state = _without_shared(task, state, clock, progress)
    if flips:
        state, signs = _without_mirrors(state, signs, shape, prior, clock)
    known = prior.known if state.polarity is None else state.polarity > SURE
    return as_recovery(
        NAME, encodings, scheme, unit, state, signs, known or own is not None, clock, aside, flips
    )


def _without_shared(
    task: ImageTask, state: RoundState, clock: Stopwatch, progress: Progress | None
) -> RoundState:
    """Public images that rows of one epoch share are taken out, where rows come so."""
    if task.epochs is None or not task.public:
        return state
    with clock("shared public images"):
        return without_shared(task, state, task.epochs, progress)


def _without_mirrors(
    state: RoundState, signs: Clues, shape: tuple[int, ...], prior: ImagePrior, clock: Stopwatch
) -> tuple[RoundState, Clues]:
    """Images that are mirror images of each other become one."""
    with clock("mirrored"):
        images, became = merge_mirrored(state.images, signs.encodings, shape, prior)
        return state.merged(images, became), signs.merged(became)


def _nothing(encodings: Encodings, clock: Stopwatch) -> Recovery:
    why = "no encodings stand out as sharing an image: more are needed"
    return Recovery.empty(encodings, NAME, why, clock.seconds)


def _vectors(images: ArrayLike | None, name: str, d: int) -> Floats | None:
    """Images (items, pixels), as many pixels as encodings have."""
    if images is None:
        return None
    vectors = as_vectors(images, name)
    if vectors.shape[1] != d:
        raise InputError(
            f"{name} images have {vectors.shape[1]} pixels, encodings {d}: bring them to the "
            "same size"
        )
    return vectors


ATTACK = natural
