"""The attack on mixtures: `recover(attack="mixing")`, also called "mixup", "unmix" and "unmask".

    y = s∘(ΛX)      Λ sparse and not negative; s kept, one of a pool of masks, or hidden

    signs     weights   what is done
    kept      own       corners of a simplex (`corners`); more records than values: `dictionary`
    kept      fixed     the same with the weight known; the public part is found first, by matching
                        pursuit, and again once private records are known
    masked    own       masks (`masks`), then as kept; masks again by what records say of each value
    hidden    own       shares from correlations, signs by reflections (`hidden`)

In the end the certificate decides (`unveil.certificate`); nothing here says "verified". Under noise
nothing is proved, and `evidence["standard_error"]` says how far off each record is likely to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from unveil.certificate import certify
from unveil.checks import InputError
from unveil.encode.weights import sample_weights
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch, must_fit, one_blas_thread
from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.mixing.codes import matching_pursuit, sparse_codes
from unveil.mixing.corners import find_corners
from unveil.mixing.dictionary import find_dictionary, sketch_dictionary
from unveil.mixing.hidden import find_hidden
from unveil.mixing.masks import mask_groups, relative_masks
from unveil.mixing.model import Floats, Mixture, mixed, rms
from unveil.records import Progress, Recovery
from unveil.recovery import AMBIGUOUS, UNRESOLVED
from unveil.scheme import Scheme
from unveil.seeds import Rng, child, root

NAME = "mixing"


def takes(scheme: Scheme) -> bool:
    """Whether encodings of this scheme are mixtures that this attack undoes."""
    if scheme.k_private < 1 or scheme.k_private + scheme.k_public < 2:
        return False
    if scheme.fixed_weights:
        return scheme.signs == "kept" and scheme.k_private >= 2
    if scheme.signs in ("kept", "masked"):
        return True
    return scheme.weighting == "half-normal" and not scheme.k_public


def recover_mixture(
    encodings: Encodings,
    public: ArrayLike | None = None,
    *,
    n_private: int | None = None,
    rng: Rng = None,
    memory_limit: int | None = None,
    progress: Progress | None = None,
) -> Recovery:
    """Every private record that the encodings determine, with weights where they are drawn anew.

    Parameters
    ----------
    encodings : Encodings
        Signs kept or masked, or own half-normal weights with hidden signs.
    public : array of shape (n_public, d)
        The public vectors. Where weights are drawn anew they may be left out: they come back among
        the records.
    n_private : int
        How many records there are, public ones included where weights are drawn anew; None: found
        out.

    Returns
    -------
    Recovery
    """
    scheme, m, d = encodings.scheme, encodings.m, encodings.d
    if not takes(scheme):
        raise InputError(
            f"signs={scheme.signs!r}, weighting={scheme.weighting!r}, "
            f"k_private={scheme.k_private}: attack='mixing' is for mixtures of two or more with "
            "signs kept or masked, or half-normal weights; use attack=None for whatever applies"
        )
    own = not scheme.fixed_weights
    P = as_public(public, encodings) if public is not None or not own else None
    P = P if scheme.k_public else None
    must_fit(
        64 * m * d + 16 * min(m, d) ** 2,
        f"attack='mixing' on {m:,} encodings of {d:,} values",
        bytes_allowed(memory_limit),
        "attack fewer of them",
    )
    clock, random = Stopwatch(), child(root(rng), "mixing")
    # Columns in units of their own: a table's small ones would say nothing beside the large ones.
    total = 1.0 if own else scheme.k_private * scheme.private_weight
    total += 0.0 if own else scheme.k_public * scheme.public_weight
    unit, offset = _column_units(encodings.values, scheme.signs == "kept")
    Y = encodings.values.astype(np.float64) / unit - offset
    known = None if P is None else P.astype(np.float64) / unit - offset / total
    with clock("records"), one_blas_thread():
        found, names, facts = _solve(Y, known, scheme, n_private, random, _stage(progress))
    if found is None or not _believable(found):
        masks = f"{facts['masks']} masks found; below them " if "masks" in facts else ""
        k = scheme.k_private + (scheme.k_public if own else 0)
        why = f"{masks}no mixtures of {k} records explain the {m} encodings: another k_private, "
        why += "more encodings or less noise is needed"
        return Recovery.empty(encodings, NAME, why, clock.seconds, facts)
    found = replace(
        found, values=(found.values + offset / total) * unit, noise=found.noise * rms(unit)
    )
    with clock("certificate"), one_blas_thread():
        if own:
            return _judged(encodings, found, P, clock, facts)
        return _judged_fixed(encodings, found, P, names, clock, facts)


def _believable(found: Mixture, *, explained: float = 0.5, noisiest: float = 0.5) -> bool:
    """Whether a share `explained` of the encodings is explained, fewer being what chance leaves,
    with noise up to `noisiest` in units of a record's rms."""
    quiet = found.exact or found.noise <= noisiest * rms(found.values)
    return bool(found.fits.mean() >= explained and quiet)


def _stage(progress: Progress | None) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    tell = progress
    return lambda done, total: tell("records", done, total)


def _column_units(
    values: NDArray[np.float32], kept: bool, *, alike: float = 16.0
) -> tuple[Floats, Floats]:
    """Spread of each column, or one for all where they are within a factor `alike`, so that noise
    has one size; and the mean in that unit where signs are kept and it is more than four spreads,
    since an offset says nothing of the records. Not all of it is taken off: records would be
    combinations of each other."""
    wide = values.astype(np.float64)
    spread = wide.std(axis=0) if kept else np.sqrt(np.mean(wide**2, axis=0))
    flat = spread <= 1e-7 * np.abs(wide).max(axis=0, initial=0.0)
    usual = float(np.sqrt(np.mean(spread[~flat] ** 2))) if (~flat).any() else 1.0
    unit = np.where(flat, usual, spread)
    if unit.max() <= alike * unit.min():
        unit = np.full(len(unit), usual)
    mean = wide.mean(axis=0) / unit
    far = kept & (np.abs(mean) > 4)
    return unit, np.where(far, mean - np.copysign(1.0, mean), 0.0)


def _solve(
    Y: Floats,
    P: Floats | None,
    scheme: Scheme,
    n: int | None,
    rng: np.random.Generator,
    progress: Callable[[int, int], None] | None,
) -> tuple[Mixture | None, NDArray[np.int64] | None, dict[str, Any]]:
    """Records and weights; which public vectors each row mixes, where weights are fixed; facts."""
    if scheme.fixed_weights:
        found, names = _fixed(Y, P, scheme, n, progress)
        return found, names, {}
    if scheme.signs == "masked":
        found, count = _masked(Y, P, scheme, n, progress)
        return found, None, {"masks": count}
    if scheme.signs != "kept":
        magnitudes = np.abs(Y).astype(np.float32)
        return find_hidden(magnitudes, scheme.k_private, rng, progress=progress), None, {}
    k = scheme.k_private + scheme.k_public
    found = find_corners(Y, k, n, progress=progress)
    if found is None or not found.exact:
        many = find_dictionary(Y, k, _mean_square(scheme), known=P, progress=progress)
        found = many if many is not None else found
    return found, None, {}


def _mean_square(scheme: Scheme, *, draws: int = 20_000) -> float:
    """Mean of Σ λ² under the scheme's law."""
    weights = sample_weights(scheme, draws, np.random.default_rng(0))
    return float(np.square(weights).sum(axis=1).mean())


def _fixed(
    Y: Floats,
    P: Floats | None,
    scheme: Scheme,
    n: int | None,
    progress: Callable[[int, int], None] | None,
    *,
    rounds: int = 4,
) -> tuple[Mixture | None, NDArray[np.int64] | None]:
    """One weight for all. The public part is looked for `rounds` times: first with the private part
    as noise, then with private records known, for rows that are not explained."""
    k, a, b = scheme.k_private, scheme.private_weight, scheme.public_weight
    if P is None:
        return find_corners(Y, k, n, weight=a, progress=progress), None
    names = matching_pursuit(Y, P, scheme.k_public, b)
    found: Mixture | None = None
    for _ in range(rounds):
        rest = Y - b * P[names].sum(axis=1)
        if found is None:
            # A wrong public part is a record of its own: the rank says nothing, falls do.
            new = find_corners(rest, k, n, weight=a, progress=progress)
        else:
            members, weights = sparse_codes(rest, found.values, k, weight=a)
            off = np.abs(rest - mixed(found.values, members, weights)).max(axis=1)
            fits = off <= 1e-4 * rms(Y)
            largest = float(off[fits].max(initial=0.0))
            new = Mixture(found.values, members, weights, fits, largest, bool(fits.mean() >= 0.5))
        if new is None or (found is not None and new.fits.sum() <= found.fits.sum()):
            break
        found = new
        left = np.flatnonzero(~found.fits)
        if not found.exact or not len(left):
            break
        own = mixed(found.values, found.members[left], found.weights[left])
        names[left] = matching_pursuit(Y[left] - own, P, scheme.k_public, b)
    return found, names


def _masked(
    Y: Floats,
    P: Floats | None,
    scheme: Scheme,
    n: int | None,
    progress: Callable[[int, int], None] | None,
    *,
    first_turns: int = 25,
    mends: int = 3,
) -> tuple[Mixture | None, int]:
    """Masks, then mixtures below them; and how many masks. Masks are looked at again `mends` times,
    by what records say after `first_turns` of the alternation."""
    values, m = Y.astype(np.float32), len(Y)
    groups = mask_groups(values)
    count, rows = int(groups.max()) + 1, np.flatnonzero(groups >= 0)
    if 2 * len(rows) < m:
        return None, count
    like = None if P is None else P.astype(np.float32)
    masks = relative_masks(values, groups, like).astype(np.float64)
    k, squares, mine = scheme.k_private + scheme.k_public, _mean_square(scheme), groups[rows]
    start: Floats | None = None
    found: Mixture | None = None
    for _ in range(mends):
        Z = Y[rows] * masks[mine]
        if min(Z.shape) == Z.shape[1]:
            found = find_corners(Z, k, n, progress=progress)
            if found is not None and found.exact:
                break
        found = None
        fit = sketch_dictionary(
            Z, k, squares, known=P, start=start, turns=first_turns, progress=progress
        )
        if fit is None:
            break
        start = fit.values[0 if P is None else len(P) :]
        agree = Z * mixed(fit.values, fit.members, fit.weights)
        wrong = np.array([agree[mine == g].sum(axis=0) < 0 for g in range(count)])
        turned = np.zeros(Z.shape[1], bool) if P is None else _turned(start, P)
        if turned.any():
            wrong, start = np.tile(turned, (count, 1)), None
        if not wrong.any():
            break
        masks = np.where(wrong, -masks, masks)
    if found is None:
        Z = Y[rows] * masks[mine]
        found = find_dictionary(Z, k, squares, known=P, start=start, progress=progress)
    if found is None:
        return None, count
    # Rows in no group explain nothing; signs per value by public vectors among the records.
    members, weights = np.zeros((m, k), np.int64), np.zeros((m, k))
    fits = np.zeros(m, bool)
    members[rows], weights[rows], fits[rows] = found.members, found.weights, found.fits
    return replace(found, members=members, weights=weights, fits=fits), count


def _turned(
    x: Floats, P: Floats, *, alike: float = 0.1, by_signs: float = 0.5
) -> NDArray[np.bool_]:
    """(d,) values with the other sign in those records that have the magnitudes of a public vector:
    within `alike` of the usual distance, and within `by_signs` of the distance with signs."""
    sizes = np.abs(P)
    apart = np.stack([np.linalg.norm(sizes - one, axis=1) for one in np.abs(x)])
    nearest, least = apart.argmin(axis=1), apart.min(axis=1)
    near = least < alike * np.median(apart)
    near &= least < by_signs * np.linalg.norm(x - P[nearest], axis=1)
    return np.asarray((x[near] * P[nearest[near]]).sum(axis=0) < 0)


def _judged(
    encodings: Encodings,
    found: Mixture,
    P: NDArray[np.float32] | None,
    clock: Stopwatch,
    facts: dict[str, Any],
    *,
    faintest: float = 1e-5,
    faint: float = 1e-2,
) -> Recovery:
    """The recovery where weights are drawn anew. Records that are public vectors are left out; a
    weight below `faintest` (under noise `faint`) leaves open whose it is, and names no member."""
    scheme, m = encodings.scheme, encodings.m
    k = scheme.k_private + scheme.k_public
    signs = np.ones(encodings.d)
    signed = scheme.signs == "kept"
    # 1. Which records are public vectors; behind masks they tell the sign of every value.
    listed = _public_names(found.values if signed else np.abs(found.values), P, not signed)
    if not signed and P is not None and (listed >= 0).sum() >= 2:
        plus, minus = _agreement(found.values, P, listed)
        if (plus != minus).all():
            signs, signed = np.where(plus, 1.0, -1.0), True
    x = found.values * signs
    W = found.matrix
    W.data[W.data <= (faintest if found.exact else faint)] = 0
    W.eliminate_zeros()
    used = np.asarray((W > 0).sum(axis=0)).ravel() > 0
    names = np.flatnonzero((listed < 0) & used)
    weights = sparse.csr_array(W[:, names])
    supports = _supports(W, listed, scheme.k_public) if P is not None else None
    # 2. The certificate, or standard errors.
    explained, error = int(found.fits.sum()), found.error()[names]
    kind = "private vectors" if P is not None or not scheme.k_public else "vectors"
    if found.exact:
        judged = certify(
            encodings, x[names], weights.astype(bool), P, supports=supports, weights=weights
        )
        status, reasons, opened = judged.status, judged.reasons, judged.doubtful
        text = f"{int(judged.verified.sum())} of {len(names)} {kind} verified; {explained} of "
        text += f"{m} encodings explained exactly as mixtures of {k}, weights found with them"
    else:
        sure = error <= 0.5 * rms(x)
        status = np.where(sure, UNRESOLVED, AMBIGUOUS).astype("<U10")
        noise, opened = found.noise, None
        reasons = tuple(
            f"known to about ±{size:.2g} per value: the encodings carry noise of about {noise:.2g}"
            if good
            else "the encodings that use it do not determine it"
            for size, good in zip(error, sure, strict=True)
        )
        text = f"{int(sure.sum())} {kind} recovered to about ±{np.median(error):.2g} per value; "
        text += f"{explained} of {m} encodings explained as mixtures of {k} up to noise of about "
        text += f"{noise:.2g}, so that nothing is exact"
        facts |= {"noise": noise, "standard_error": error.tolist()}
    if "masks" in facts:
        text += f"; {facts['masks']} masks found"
    if (listed >= 0).any():
        text += f"; {int((listed >= 0).sum())} further corners are public vectors"
    facts |= {
        "estimated_n_private": len(names),
        "encodings_explained": explained,
        "mixed": float(np.median((found.weights > faint).sum(axis=1))),
        "equations": explained * encodings.d,
        "unknowns": found.values.size + explained * (k - 1),
    }
    return Recovery(
        vectors=x[names].astype(np.float32),
        status=status,
        signed=signed,
        members=weights.astype(bool),
        residual=np.full(len(names), found.noise / rms(encodings.values)),
        reasons=reasons,
        attack=NAME,
        explanation=text,
        seconds=clock.seconds,
        evidence=facts,
        weights=weights,
        doubtful=opened if opened is not None and opened.any() else None,
        explained=explained,
        exact=found.exact,
    )


def _public_names(
    x: Floats, P: NDArray[np.float32] | None, fold: bool, *, same: float = 1e-3
) -> NDArray[np.int64]:
    """(n,) which public vector each record is, −1: none; relative distance up to `same`."""
    names = np.full(len(x), -1, np.int64)
    listed = None if P is None else np.abs(P) if fold else P
    for i, value in enumerate(x if listed is not None else ()):
        apart = np.linalg.norm(listed - value, axis=1)
        if apart.min() <= same * np.linalg.norm(value):
            names[i] = apart.argmin()
    return names


def _agreement(
    x: Floats, P: NDArray[np.float32], listed: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(d,) values at which some public vector has the sign of its record, and the other sign."""
    mine = np.flatnonzero(listed >= 0)
    theirs = P[listed[mine]].astype(np.float64)
    clear = np.abs(theirs) > 1e-3 * rms(theirs)
    agree = x[mine] * theirs
    plus, minus = (np.asarray((clear & part).any(axis=0)) for part in (agree > 0, agree < 0))
    return plus, minus


def _supports(W: sparse.csr_array, listed: NDArray[np.int64], k_public: int) -> NDArray[np.int64]:
    """(m, k) the public vectors that each row mixes, −1 where there are fewer."""
    columns = np.flatnonzero(listed >= 0)
    part = sparse.csr_array(W[:, columns]).tocoo()
    most = max(k_public, int(np.bincount(part.row, minlength=1).max(initial=0)))
    out, place = np.full((W.shape[0], most), -1, np.int64), np.zeros(W.shape[0], np.int64)
    for row, column in zip(part.row, part.col, strict=True):
        out[row, place[row]] = listed[columns[column]]
        place[row] += 1
    return out


def _judged_fixed(
    encodings: Encodings,
    found: Mixture,
    P: NDArray[np.float32] | None,
    names: NDArray[np.int64] | None,
    clock: Stopwatch,
    facts: dict[str, Any],
) -> Recovery:
    """The recovery where all encodings have one weight: members alone go to the certificate, or
    under noise standard errors of the records."""
    scheme, m = encodings.scheme, encodings.m
    rows = np.flatnonzero(found.fits)
    # A record that one row alone uses takes whatever that row has: the row says nothing.
    while True:
        uses = np.bincount(found.members[rows].ravel(), minlength=len(found.values))
        keep = (uses[found.members[rows]] > 1).all(axis=1)
        if keep.all():
            break
        rows = rows[keep]
    used, inside = np.unique(np.sort(found.members[rows], axis=1), return_inverse=True)
    members = np.full((m, scheme.k_private), -1, np.int64)
    members[rows] = inside.reshape(len(rows), -1)
    x, error = found.values[used], found.error()[used]
    facts |= {"estimated_n_private": len(x), "encodings_explained": len(rows)}
    if found.exact:
        judged = certify(encodings, x.astype(np.float32), members, P, names)
        text = f"{int(judged.verified.sum())} of {len(x)} private vectors verified; "
        text += f"{judged.explained} of {m} encodings explained exactly"
        facts |= {"equations": judged.explained * encodings.d, "unknowns": x.size}
        return replace(
            judged,
            attack=NAME,
            explanation=text,
            seconds=clock.seconds,
            evidence={**facts, **judged.evidence},
        )
    sure = error <= 0.5 * rms(x)
    noise = found.noise
    reasons = tuple(
        f"known to about ±{size:.2g} per value: the encodings carry noise of about {noise:.2g}"
        if good
        else "the encodings that use it do not determine it"
        for size, good in zip(error, sure, strict=True)
    )
    text = f"{int(sure.sum())} private vectors recovered to about ±{np.median(error):.2g} per "
    text += f"value; {len(rows)} of {m} encodings explained up to noise of about {noise:.2g}, so "
    text += "that nothing is exact"
    return Recovery(
        vectors=x.astype(np.float32),
        status=np.where(sure, UNRESOLVED, AMBIGUOUS).astype("<U10"),
        signed=True,
        members=sparse.csr_array(found.matrix[:, used]).astype(bool),
        residual=np.full(len(x), noise / rms(encodings.values)),
        reasons=reasons,
        attack=NAME,
        explanation=text,
        seconds=clock.seconds,
        evidence={**facts, "noise": noise, "standard_error": error.tolist()},
        explained=len(rows),
        exact=False,
    )
