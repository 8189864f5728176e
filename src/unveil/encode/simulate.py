"""A complete instance with its truth: vectors, selections, encodings, each from its own named seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.data.gaussian import gaussian_vectors
from unveil.encode.instahide import encode
from unveil.encode.selection import draw_selection
from unveil.records import Encodings, InputError, Scheme, Simulation, as_vectors
from unveil.seeds import Rng, child, root


def simulate(
    scheme: Scheme | None = None,
    n_private: int | None = None,
    *,
    n_public: int | None = None,
    m: int = 800,
    d: int | None = None,
    private: ArrayLike | None = None,
    public: ArrayLike | None = None,
    noise: float = 0.0,
    rng: Rng = None,
) -> Simulation:
    """Encode Gaussian vectors, or the vectors given as `private` and `public`, as `scheme` would.

    Defaults: 100 private vectors of 3072 pixels, no public ones, 800 encodings. The user's own vectors are encoded
    as they are; `Encodings.pixel_rms` is then None, since the Gaussian model's unit pixels cannot be assumed.
    """
    scheme = Scheme() if scheme is None else scheme
    if not isinstance(scheme, Scheme):
        raise InputError("scheme: give an unveil.Scheme, e.g. Scheme(k_private=2)")
    seed = root(rng)
    given_private = None if private is None else as_vectors(private, "private")
    given_public = None if public is None else as_vectors(public, "public")
    d = _settle("d", d, [v.shape[1] for v in (given_private, given_public) if v is not None], 3072)
    n_private = _settle("n_private", n_private, [] if given_private is None else [len(given_private)], 100)
    n_public = _settle("n_public", n_public, [] if given_public is None else [len(given_public)], 0)
    if not isinstance(m, (int, np.integer)) or m < 1:
        raise InputError(f"m={m!r}: ask for at least one encoding, and a whole number of them")
    rngs = (child(seed, name) for name in ("selection-private", "selection-public", "weights"))
    selection = draw_selection(scheme, n_private, n_public, m, *rngs)
    vectors = gaussian_vectors(n_private, d, child(seed, "private")) if given_private is None else given_private
    others: NDArray[np.float32] | None = given_public
    if others is None and n_public:
        others = gaussian_vectors(n_public, d, child(seed, "public"))
    values = encode(vectors, others, selection, scheme, noise=noise, rng=child(seed, "signs-and-noise"))
    pixel_rms = 1.0 if given_private is None else None
    return Simulation(Encodings(values, scheme, pixel_rms), vectors, others, selection)


def _settle(name: str, asked: int | None, found: list[int], default: int) -> int:
    values = set(found) | (set() if asked is None else {asked})
    if len(values) > 1:
        raise InputError(
            f"{name}: {' and '.join(sorted(map(str, values)))} contradict each other; the arrays decide, leave {name} out"
        )
    value = values.pop() if values else default
    if not isinstance(value, (int, np.integer)) or value < (0 if name != "d" else 1):
        raise InputError(f"{name}={value!r}: give a positive number")
    return value
