"""A complete instance with its truth: vectors, selections, encodings, each from its own named
seed."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.checks import (
    DataLike,
    InputError,
    as_shape,
    as_table,
    as_vectors,
    column_names,
    one_shape,
)
from unveil.data.bundled import gaussian_vectors
from unveil.encode.augment import with_crops, with_flips
from unveil.encode.copies import Copies
from unveil.encode.instahide import encode
from unveil.encode.selection import draw_selection
from unveil.encode.units import in_units, private_and_public
from unveil.encodings import Encodings, Selection, Simulation
from unveil.engine.blocks import must_fit
from unveil.scheme import Scheme
from unveil.seeds import Rng, child, root


def simulate(
    scheme: Scheme | None = None,
    n_private: int | None = None,
    *,
    n_public: int | None = None,
    m: int = 800,
    d: int | None = None,
    private: DataLike | None = None,
    public: DataLike | None = None,
    noise: float = 0.0,
    image_shape: tuple[int, ...] | None = None,
    labels: ArrayLike | None = None,
    flips: bool | Literal["independent", "epoch"] = False,
    crops: int = 0,
    crops_per: Literal["use", "epoch"] = "use",
    units: str | tuple[Any, Any] | None = None,
    rng: Rng = None,
    shape: tuple[int, ...] | None = None,
) -> Simulation:
    """Encode Gaussian vectors, or the vectors given as `private` and `public`, as `scheme` would.

    Parameters
    ----------
    scheme : Scheme or None
        How encodings are made; None: two private vectors each, equal weights.
    n_private, n_public : int or None
        How many vectors to draw; None: as many as are given, else 100 and 0.
    m : int
        How many encodings.
    d : int or None
        Pixels of a vector; None: those of the vectors given, else 3072.
    private, public : array of shape (n, d), tensor, frame, path or None
        The user's own vectors, encoded as they are. `Encodings.pixel_rms` is None then, since the
        Gaussian model's unit pixels cannot be assumed.
    noise : float
        Standard deviation of Gaussian noise, added before signs are hidden.
    image_shape : tuple of int or None
        (height, width) or (height, width, channels), where vectors are images. `shape` is an older
        name of the same.
    labels : array of int of shape (n_private,) or None
        Class of each private vector, from 0; each encoding releases Σ λ·onehot over its private
        vectors.
    flips : bool, "independent" or "epoch"
        Data augmentation: images are mirrored left to right with probability one half. True or
        "independent": anew each time an image is mixed. "epoch": as the released code does, private
        ones alone and once per epoch, so that all slots of an epoch share the copy; for schemes
        with epochs. Needs `image_shape`.
    crops : int
        Private images are padded by so many black pixels each way and cut to their own size again
        at a random place. Black is a pixel of 0 in the `units`; where none are said, the least
        value of a channel. Needs `image_shape`.
    crops_per : "use" or "epoch"
        Whether a place is drawn each time an image is mixed, or once per epoch, as the released
        code does; for schemes with epochs.
    units : str, tuple or None
        In which images, given as bytes, in [0, 1] or in [−1, 1], are mixed: [-1,1], [0,1], bytes,
        cifar10, imagenet, or (mean, std) of pixels from 0 to 1. "released": private ones in
        cifar10, public ones in imagenet, as the released code does. The vectors of the result are
        in these units. Needs `private` and `image_shape`. None: vectors are mixed as they are.
    rng : int, Generator or None
        The same seed gives the same bytes.

    Returns
    -------
    Simulation
        The encodings together with the vectors and selections behind them.

    Raises
    ------
    InputError
        Where sizes contradict each other, or the result would not fit into memory.

    References
    ----------
    `defn:gaussian_images`, `defn:select_distribution`, `eq:instahide_def` of the paper.

    Examples
    --------
    >>> import unveil
    >>> scheme = unveil.Scheme(k_private=2, k_public=1)
    >>> sim = unveil.simulate(scheme, n_private=10, n_public=5, m=30, d=64, rng=0)
    >>> sim.encodings.values.shape, sim.selection.private.shape, sim.public.shape
    ((30, 64), (30, 2), (5, 64))
    """
    # 1. Sizes: what was asked for and what was given must agree.
    scheme = Scheme() if scheme is None else scheme
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    seed = root(rng)
    private = as_table(private)
    given_private = None if private is None else as_vectors(private, "private")
    given_public = None if public is None else as_vectors(public, "public")
    d = _settle("d", d, [v.shape[1] for v in (given_private, given_public) if v is not None], 3072)
    n_private = _settle(
        "n_private", n_private, [] if given_private is None else [len(given_private)], 100
    )
    n_public = _settle("n_public", n_public, [] if given_public is None else [len(given_public)], 0)
    if not isinstance(m, (int, np.integer)) or m < 1:
        raise InputError(f"m={m!r}: ask for at least one encoding, and a whole number of them")
    # 2. All of it must fit before anything is drawn.
    drawn = (
        m + (n_private if given_private is None else 0) + (n_public if given_public is None else 0)
    )
    must_fit(
        4 * drawn * d,
        f"{m:,} encodings of {d:,} pixels, with the vectors drawn for them,",
        cure="lower m or d",
    )
    # 3. Selections and vectors, each from a seed of its own.
    rngs = (child(seed, name) for name in ("selection-private", "selection-public", "weights"))
    selection = draw_selection(scheme, n_private, n_public, m, *rngs)
    vectors = (
        gaussian_vectors(n_private, d, child(seed, "private"))
        if given_private is None
        else given_private
    )
    others: NDArray[np.float32] | None = given_public
    if others is None and n_public:
        others = gaussian_vectors(n_public, d, child(seed, "public"))
    # 4. Images: their units, mirrored and cropped at random where asked for.
    given = one_shape(image_shape, shape)
    sizes = None if given is None else as_shape(given, d)
    black: NDArray[np.float32] | None = None
    if units is not None:
        if sizes is None or given_private is None or (n_public and given_public is None):
            raise InputError(
                f"units={units!r} are of images: add image_shape=(height, width[, channels]), and "
                "give the images"
            )
        own, theirs = private_and_public(units)
        black = own.black(sizes)
        vectors = in_units(vectors, own, sizes, "private")
        others = None if others is None else in_units(others, theirs, sizes, "public")
    parts = vectors, others, selection
    if flips:
        if sizes is None:
            raise InputError(
                "flips=True needs to know the images: add image_shape=(height, width[, channels])"
            )
        if flips not in (True, "independent", "epoch"):
            raise InputError(f"flips={flips!r}: choose True, 'independent' or 'epoch'")
        if flips == "epoch" and scheme.pairing == "independent":
            raise InputError("flips='epoch' without epochs: use pairing='epochs', or flips=True")
        epoch = n_private if flips == "epoch" else 0
        parts = with_flips(*parts, sizes, child(seed, "flips"), epoch)
    if crops:
        if sizes is None:
            raise InputError(
                f"crops={crops!r} needs to know the images: "
                "add image_shape=(height, width[, channels])"
            )
        if crops_per not in ("use", "epoch"):
            raise InputError(f"crops_per={crops_per!r}: choose 'use' or 'epoch'")
        if crops_per == "epoch" and scheme.pairing == "independent":
            raise InputError(
                "crops_per='epoch' without epochs: use pairing='epochs', or crops_per='use'"
            )
        must_fit(4 * m * scheme.k_private * d, f"the crops of {m:,} encodings", cure="lower m")
        epoch = n_private if crops_per == "epoch" else 0
        cropped = with_crops(
            parts[0], parts[2], Copies(sizes, crops), n_private, child(seed, "crops"), epoch, black
        )
        parts = cropped[0], parts[1], cropped[1]
    # 5. Encode.
    values = encode(*parts, scheme, noise=noise, rng=child(seed, "signs-and-noise"))
    pixel_rms = 1.0 if given_private is None else None
    mixed = None if labels is None else _mix_labels(labels, n_private, selection, scheme)
    return Simulation(
        Encodings(values, scheme, pixel_rms, sizes, mixed, column_names(private)),
        vectors,
        others,
        selection,
    )


def _mix_labels(
    labels: ArrayLike, n: int, selection: Selection, scheme: Scheme
) -> NDArray[np.float32]:
    classes = np.asarray(labels)
    if classes.shape != (n,) or classes.dtype.kind not in "iu" or classes.min(initial=0) < 0:
        raise InputError(
            f"labels: give the class of each of the {n} private vectors, whole numbers from 0"
        )
    count = int(classes.max(initial=0)) + 1
    must_fit(
        12 * len(selection.private) * count,
        f"labels of {count:,} classes",
        cure="number the classes from 0",
    )
    chosen = classes.astype(np.int64)[selection.private]
    weights = (
        np.full(chosen.shape, scheme.private_weight)
        if selection.weights is None
        else selection.weights
    )
    mixed = np.zeros((len(chosen), count))
    np.add.at(mixed, (np.arange(len(chosen))[:, None], chosen), weights)
    return mixed.astype(np.float32)


def _settle(name: str, asked: int | None, found: list[int], default: int) -> int:
    values = set(found) | (set() if asked is None else {asked})
    if len(values) > 1:
        raise InputError(
            f"{name}: {' and '.join(sorted(map(str, values)))} contradict each other; the arrays "
            f"decide, leave {name} out"
        )
    value = values.pop() if values else default
    if not isinstance(value, (int, np.integer)) or value < (0 if name != "d" else 1):
        raise InputError(f"{name}={value!r}: give a positive number")
    return value
