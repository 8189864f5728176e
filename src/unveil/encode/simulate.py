"""A complete instance with its truth: vectors, selections, encodings, each from its own named seed.

    y = |Σ_public a_pub·p + Σ_private a_priv·x + noise|         (`eq:instahide_def`)

**Who is mixed** (`defn:select_distribution`). Each encoding draws a uniform k_public-subset T₁ of
the public and a uniform k_private-subset T₂ of the private vectors. The printed entries 1/√k_public
and 1/√k_private do not give a unit vector when both parts are present; `Scheme.weighting` says
which of three readings is meant, or that each encoding draws weights of its own (`encode.weights`).
`Scheme.pairing` "epochs" draws as a training run does (Huang et al., `train_cross.py`): each epoch
uses every private vector once per slot. The public set is permuted in every epoch, and its first n
vectors, n the number of private ones, are used once per public slot: a public vector may be in two
slots of one encoding. With fewer public vectors than private ones the released code stops; here
they are used again.

**Data augmentation.** Every copy that is mixed, mirrored or cropped, becomes a vector of its own,
and the selection names copies; both are used for encoding alone. A training run draws a copy anew
each time an image is mixed, or once per epoch, so that all slots of an epoch share it. Mirroring
comes first here and second there, which draws the same copies as often. That code leaves public
images as they are.

**Signs.** |Xw|, or Xw with random signs, or, for MixUp, Xw as it is; or, for TextHide, Xw through
one of a pool of masks (Huang, Song, Chen, Li, Arora, Findings of EMNLP 2020;
github.com/Hazelsuko07/TextHide, `modeling_bert.py`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.checks import (
    DataLike,
    InputError,
    Rng,
    as_shape,
    as_table,
    as_vectors,
    child,
    column_names,
    is_count,
    root,
    row_blocks,
)
from unveil.data.bundled import gaussian_vectors
from unveil.encode.copies import Copies
from unveil.encode.units import in_units, private_and_public
from unveil.encode.weights import draw_weights
from unveil.encodings import Encodings, Selection, Simulation
from unveil.engine.blocks import must_fit
from unveil.scheme import Scheme

Floats = NDArray[np.float32]


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
        (height, width) or (height, width, channels), where vectors are images.
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
    own = None if private is None else as_vectors(private, "private")
    others = None if public is None else as_vectors(public, "public")
    d = _settle("d", d, [x.shape[1] for x in (own, others) if x is not None], 3072, least=1)
    n_private = _settle("n_private", n_private, [] if own is None else [len(own)], 100)
    n_public = _settle("n_public", n_public, [] if others is None else [len(others)], 0)
    if not is_count(m, 1):
        raise InputError(f"m={m!r}: ask for at least one encoding, and a whole number of them")
    # 2. Images: what can be done to them.
    sizes = None if image_shape is None else as_shape(image_shape, d)
    if sizes is None and (flips or crops or units is not None):
        raise InputError(
            "flips=, crops= and units= are of images: add image_shape=(height, width[, channels])"
        )
    if units is not None and (own is None or (n_public and others is None)):
        raise InputError(f"units={units!r} say how images were scaled: give the images")
    for name, per, known in (
        ("flips", flips, (True, "independent", "epoch", False)),
        ("crops_per", crops_per, ("use", "epoch")),
    ):
        if per not in known:
            raise InputError(f"{name}={per!r}: choose {' or '.join(map(repr, known))}")
        if per == "epoch" and scheme.pairing == "independent":
            raise InputError(
                f"{name}='epoch' without epochs: use pairing='epochs', or {name}={known[0]!r}"
            )
    # 3. All of it must fit before anything is drawn.
    drawn = m + n_private * (own is None) + n_public * (others is None)
    what = f"{m:,} encodings of {d:,} pixels, with the vectors drawn for them,"
    must_fit(4 * drawn * d, what, cure="lower m or d")
    # 4. Selections and vectors, each from a seed of its own.
    rngs = (child(seed, name) for name in ("selection-private", "selection-public", "weights"))
    selection = draw_selection(scheme, n_private, n_public, m, *rngs)
    pixel_rms = 1.0 if own is None else None
    own = gaussian_vectors(n_private, d, child(seed, "private")) if own is None else own
    if others is None and n_public:
        others = gaussian_vectors(n_public, d, child(seed, "public"))
    # 5. Images in their units, mirrored and cropped at random where asked for.
    black: Floats | None = None
    if units is not None and sizes is not None:
        mine, theirs = private_and_public(units)
        black = mine.black(sizes)
        own = in_units(own, mine, sizes, "private")
        others = None if others is None else in_units(others, theirs, sizes, "public")
    mixed, pool, copies = own, others, selection
    if flips and sizes is not None:
        epoch = n_private if flips == "epoch" else 0
        mixed, pool, copies = with_flips(own, others, selection, sizes, child(seed, "flips"), epoch)
    if crops and sizes is not None:
        must_fit(4 * m * scheme.k_private * d, f"the crops of {m:,} encodings", cure="lower m")
        epoch, drawing = n_private if crops_per == "epoch" else 0, child(seed, "crops")
        reach = Copies(sizes, crops)
        mixed, copies = with_crops(mixed, copies, reach, n_private, drawing, epoch, black)
    # 6. Encode.
    values = encode(mixed, pool, copies, scheme, noise=noise, rng=child(seed, "signs-and-noise"))
    classes = None if labels is None else _mix_labels(labels, n_private, selection, scheme)
    encodings = Encodings(values, scheme, pixel_rms, sizes, classes, column_names(private))
    return Simulation(encodings, own, others, selection)


def _mix_labels(labels: ArrayLike, n: int, selection: Selection, scheme: Scheme) -> Floats:
    """(m, classes): Σ weight·onehot over the private vectors of each encoding."""
    classes = np.asarray(labels)
    if classes.shape != (n,) or classes.dtype.kind not in "iu" or classes.min(initial=0) < 0:
        raise InputError(
            f"labels: give the class of each of the {n} private vectors, whole numbers from 0"
        )
    (m, k), count = selection.private.shape, int(classes.max(initial=0)) + 1
    must_fit(12 * m * count, f"labels of {count:,} classes", cure="number the classes from 0")
    weights = selection.weights
    data = np.full(m * k, scheme.private_weight) if weights is None else weights.ravel()
    places = np.repeat(np.arange(m), k), classes[selection.private].ravel()
    return sparse.coo_array((data, places), shape=(m, count)).toarray().astype(np.float32)


def _settle(name: str, asked: int | None, given: list[int], default: int, least: int = 0) -> int:
    values = {*given} if asked is None else {*given, asked}
    if len(values) > 1:
        raise InputError(
            f"{name}: {' and '.join(sorted(map(str, values)))} contradict each other; the arrays "
            f"decide, leave {name} out"
        )
    value = values.pop() if values else default
    if not is_count(value, least):
        raise InputError(f"{name}={value!r}: give a positive number")
    return int(value)


# ---- Who is mixed.


def draw_selection(
    scheme: Scheme,
    n_private: int,
    n_public: int,
    m: int,
    private_rng: np.random.Generator,
    public_rng: np.random.Generator,
    weight_rng: np.random.Generator | None = None,
) -> Selection:
    """m draws of (T₁, T₂), each sorted; and of weights, where the scheme does not fix them."""
    # 1. Who is mixed.
    k = scheme.k_private
    for part, of, n in (("private", k, n_private), ("public", scheme.k_public, n_public)):
        if of > n:
            raise InputError(
                f"k_{part}={of} of only {n} {part} vectors: lower k_{part} or raise n_{part}"
            )
    epochs = scheme.pairing != "independent"
    if epochs and n_private:
        # Of every epoch the vectors in use; each slot has them in an order of its own.
        count = -(-m // n_private)
        names = np.tile(np.arange(n_private), (count, 1))
        further = [private_rng.permuted(names, axis=1) for _ in range(k - 1)]
        in_order = scheme.pairing == "epochs-in-order"
        first = names if in_order else private_rng.permuted(names, axis=1)
        private = _in_rows([first, *further][:k], m)
        pool = [_pool(n_public, n_private, public_rng) for _ in range(count * (n_public > 0))]
        slots = [public_rng.permuted(pool, axis=1) for _ in range(scheme.k_public)]
        public = _in_rows(slots, m)
    else:
        private = _draw_subsets(n_private, k, m, private_rng)
        public = _draw_subsets(n_public, scheme.k_public, m, public_rng)
    if scheme.fixed_weights:
        return Selection(np.sort(private, axis=1), np.sort(public, axis=1))
    # 2. With which weights.
    if weight_rng is None:
        raise InputError(f"weighting={scheme.weighting!r}: drawing weights needs weight_rng=")
    own, others = np.split(draw_weights(scheme, m, weight_rng), [k], axis=1)
    # Subsets come sorted by index. Where a law treats slots differently, weights are shuffled, or
    # small indices would get large ones. Private slots of epochs have an order of their own.
    uneven = scheme.weighting in ("sorted", "dominant") or (
        scheme.weighting == "released" and k != 2
    )
    if uneven and not epochs:
        own, others = (weight_rng.permuted(part, axis=1) for part in (own, others))
    # Sorted subsets, weights along with them.
    order, place = (np.argsort(part, axis=1, kind="stable") for part in (private, public))
    return Selection(
        private=np.take_along_axis(private, order, axis=1),
        public=np.take_along_axis(public, place, axis=1),
        weights=np.take_along_axis(own, order, axis=1),
        public_weights=np.take_along_axis(others, place, axis=1) if scheme.k_public else None,
    )


def _in_rows(slots: list[NDArray[np.int64]], m: int) -> NDArray[np.int64]:
    """(m, k): the slots (epochs, n) side by side, the last epoch cut."""
    return np.array([slot.ravel()[:m] for slot in slots], np.int64).reshape(len(slots), m).T


def _pool(n_public: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The n public vectors of an epoch, each once where there are as many."""
    return np.concatenate([rng.permutation(n_public) for _ in range(-(-n // n_public))])[:n]


def selection_matrix(indices: NDArray[np.int64], n: int, weight: float = 1.0) -> sparse.csr_array:
    """W: row i has `weight` at the chosen indices."""
    m, k = indices.shape
    data = np.full(m * k, weight, dtype=np.float64)
    return sparse.csr_array((data, indices.ravel(), np.arange(m + 1) * k), shape=(m, n))


def _draw_subsets(n: int, k: int, m: int, rng: np.random.Generator) -> NDArray[np.int64]:
    chosen = np.empty((m, k), dtype=np.int64)
    # Draw with replacement, and redraw the rows that hold a repeat until none does: uniform over
    # subsets, all rows at once. When k is a large part of n almost every row holds a repeat; then
    # rank random keys instead.
    if k * k > n:
        step = max(1, (1 << 24) // max(1, n))  # keys at a time: 128 MiB
        for start in range(0, m, step):
            keys = rng.random((min(step, m - start), n))
            chosen[start : start + step] = (
                np.argpartition(keys, k - 1, axis=1)[:, :k] if k < n else np.arange(n)
            )
    else:
        todo = np.arange(m)
        while todo.size:
            chosen[todo] = np.sort(rng.integers(0, n, size=(todo.size, k)), axis=1)
            todo = todo[(np.diff(chosen[todo], axis=1) == 0).any(axis=1)]
    return np.sort(chosen, axis=1)


# ---- Mirrored and cropped.


def with_flips(
    private: Floats,
    public: Floats | None,
    selection: Selection,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    epoch: int = 0,
) -> tuple[Floats, Floats | None, Selection]:
    """Every image with its mirror image, and a selection that takes one of the two.

    epoch: rows that share one coin per image, public ones are not mirrored then; 0: every use has
    its own
    """

    def both(vectors: Floats) -> Floats:
        mirrored = vectors.reshape(len(vectors), *shape)[:, :, ::-1]
        return np.concatenate([vectors, mirrored.reshape(vectors.shape)])

    def either(chosen: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        return chosen + n * _copies_of(chosen, 2, n, rng, epoch)

    copies = replace(selection, private=either(selection.private, len(private)))
    if epoch or public is None:
        return both(private), public, copies
    return both(private), both(public), replace(copies, public=either(copies.public, len(public)))


def with_crops(
    private: Floats,
    selection: Selection,
    copies: Copies,
    n: int,
    rng: np.random.Generator,
    epoch: int = 0,
    black: Floats | None = None,
) -> tuple[Floats, Selection]:
    """The crops that are used, and a selection of them; public images are left as they are.

    private: the n images, and after them their mirror images, where there are any; epoch: rows that
    share one crop per image; 0: every use has its own; black: its value in each channel, None: the
    least there is
    """
    chosen = selection.private
    names = chosen * copies.count + _copies_of(chosen, copies.count, n, rng, epoch)
    used, places = np.unique(names, return_inverse=True)
    fill = private.reshape(-1, copies.sides[2]).min(axis=0) if black is None else black
    take = selection_matrix(used[:, None], len(private) * copies.count)
    cropped = copies.mix(take, copies.padded(private, fill))
    return cropped, replace(selection, private=places.reshape(chosen.shape))


def _copies_of(
    chosen: NDArray[np.int64], count: int, n: int, rng: np.random.Generator, epoch: int
) -> NDArray[np.int64]:
    """Which of `count` copies each use of an image takes, drawn anew or once in `epoch` rows."""
    if not epoch:
        return rng.integers(0, count, size=chosen.shape)
    drawn = rng.integers(0, count, size=(-(-len(chosen) // epoch), n))
    return np.asarray(drawn[np.arange(len(chosen))[:, None] // epoch, chosen % n])


# ---- Mixed.


def mix(vectors: Floats, chosen: NDArray[np.int64], weight: float | NDArray[np.float64]) -> Floats:
    """weight·Σ of the chosen vectors, one row per row of `chosen` (rows, k), k ≥ 1; weights may be
    (rows, k) as well."""
    # In double precision where every entry has a weight of its own; else one scale at the end.
    if isinstance(weight, np.ndarray):
        total = np.zeros((len(chosen), vectors.shape[1]))
        for column in range(chosen.shape[1]):
            total += weight[:, column, None] * vectors[chosen[:, column]]
        return total.astype(np.float32)
    out = vectors[chosen[:, 0]]
    for column in range(1, chosen.shape[1]):
        out += vectors[chosen[:, column]]
    out *= np.float32(weight)
    return out


def encode(
    private: Floats,
    public: Floats | None,
    selection: Selection,
    scheme: Scheme,
    *,
    noise: float = 0.0,
    rng: np.random.Generator | None = None,
) -> Floats:
    """The (m, d) encodings of the selected vectors; `noise` is the standard deviation added before
    signs are hidden."""
    if not noise >= 0:
        raise InputError(f"noise={noise!r}: give a standard deviation, 0 or more")
    if rng is None and (noise or scheme.signs in ("random", "masked")):
        raise InputError("random signs, masks and noise need rng=")
    if scheme.signs == "masked" and not scheme.masks:
        raise InputError("signs='masked' of a pool of unknown size: say masks=")
    rng = np.random.default_rng(0) if rng is None else rng  # then nothing is drawn
    own = scheme.private_weight if selection.weights is None else selection.weights
    others = scheme.public_weight if selection.public_weights is None else selection.public_weights
    parts = (private, selection.private, own), (public, selection.public, others)
    out = np.empty((len(selection.private), private.shape[1]), dtype=np.float32)
    size = scheme.masks if scheme.signs == "masked" else 0
    pool = 1 - 2 * rng.integers(0, 2, size=(size, out.shape[1]), dtype=np.int8)
    for start, block in row_blocks(out):
        rows = slice(start, start + len(block))
        block[:] = 0
        for vectors, chosen, weight in parts:
            if vectors is not None and chosen.shape[1]:
                each = weight[rows] if isinstance(weight, np.ndarray) else weight
                # Encodings says which value is beyond float32, with its place.
                with np.errstate(over="ignore", invalid="ignore"):
                    block += mix(vectors, chosen[rows], each)
        # Noise before signs: that is what makes |y| folded.
        if noise:
            block += np.float32(noise) * rng.standard_normal(block.shape, dtype=np.float32)
        if scheme.signs == "absolute":
            np.abs(block, out=block)
        elif scheme.signs == "random":
            block *= 1 - 2 * rng.integers(0, 2, size=block.shape, dtype=np.int8)
        elif scheme.signs == "masked":
            block *= pool[rng.integers(0, scheme.masks, size=len(block))]
    return out
