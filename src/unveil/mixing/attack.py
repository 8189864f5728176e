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
from unveil.checks import InputError, Rng, child, root
from unveil.encode.weights import sample_weights
from unveil.encodings import Encodings, as_public
from unveil.engine.blocks import Stopwatch, must_fit, one_blas_thread
from unveil.engine.blocks import memory_limit as bytes_allowed
from unveil.mixing.codes import matching_pursuit, sparse_codes
from unveil.mixing.corners import find_corners
from unveil.mixing.dictionary import reproduced, sketch_dictionary
from unveil.mixing.hidden import find_hidden
from unveil.mixing.masks import mask_groups, relative_masks
from unveil.mixing.model import Floats, Mixture, judge, mixed, rms
from unveil.records import Progress, Recovery
from unveil.recovery import AMBIGUOUS, UNRESOLVED
from unveil.scheme import Scheme

NAME = "mixing"


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
    if not scheme.is_mixture:
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
        return _judged(encodings, found, P, names, clock, facts)


def _believable(found: Mixture, *, explained: float = 0.5, noisiest: float = 0.5) -> bool:
    """Whether encodings are reproduced; or a share `explained` of them, fewer being what chance
    leaves, up to noise of `noisiest` in units of what records differ by."""
    quiet = found.noise <= noisiest * rms(found.values - found.values.mean(axis=0))
    return found.exact or bool(found.fits.mean() >= explained and quiet)


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
        many = sketch_dictionary(Y, k, _mean_square(scheme), known=P, progress=progress)
        found = reproduced(Y, many, P) or found
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
        found = find_corners(Y, k, n, weight=a, progress=progress)
        if found is None or not found.exact:
            # More records than values: weights as if they were own ones, then the known one.
            many = sketch_dictionary(Y / (k * a), k, 1 / k, progress=progress)
            if many is not None:
                x = many.values
                held = judge(Y, *sparse_codes(Y, x, k, weight=a), len(x))
                found = held if held is not None and held.exact else found
        return found, None
    names, found = matching_pursuit(Y, P, scheme.k_public, b), None
    for _ in range(rounds):
        rest = Y - b * P[names].sum(axis=1)
        if found is None:
            # A wrong public part is a record of its own: the rank says nothing, falls do.
            new = find_corners(rest, k, n, weight=a, progress=progress)
        else:
            new = judge(rest, *sparse_codes(rest, found.values, k, weight=a), len(found.values))
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
            Z, k, squares, known=P, start=start, turns=first_turns, settled=0, progress=progress
        )
        if fit is None:
            break
        start = fit.values[0 if P is None else len(P) :]
        agree = Z * mixed(fit.values, fit.members, fit.weights)
        wrong = np.array([agree[mine == g].sum(axis=0) < 0 for g in range(count)])
        if not wrong.any():
            break
        masks = np.where(wrong, -masks, masks)
    if found is None:
        Z = Y[rows] * masks[mine]
        fit = sketch_dictionary(Z, k, squares, known=P, start=start, progress=progress)
        found = reproduced(Z, fit, P)
    if found is None:
        return None, count
    # Rows in no group explain nothing; signs per value by public vectors among the records.
    members, weights = np.zeros((m, k), np.int64), np.zeros((m, k))
    fits = np.zeros(m, bool)
    members[rows], weights[rows], fits[rows] = found.members, found.weights, found.fits
    return replace(found, members=members, weights=weights, fits=fits), count


def _judged(
    encodings: Encodings,
    found: Mixture,
    P: NDArray[np.float32] | None,
    names: NDArray[np.int64] | None,
    clock: Stopwatch,
    facts: dict[str, Any],
    *,
    faintest: float = 1e-5,
    faint: float = 1e-2,
) -> Recovery:
    """Private records with their members: what the certificate says of them, or under noise their
    standard errors.

    names (m, k_public)    Public vectors of each row, where weights are fixed. Where they are not,
                           public vectors are among the records, and are left out here.
    faintest, faint        A weight below `faintest` (under noise `faint`) leaves open whose it is,
                           and names no member.
    """
    scheme, m = encodings.scheme, encodings.m
    own, k = not scheme.fixed_weights, found.members.shape[1]
    signs, signed = np.ones(encodings.d), scheme.signs == "kept"
    listed, W = np.full(len(found.values), -1), found.matrix
    # 1. Which records are private, and who mixes them.
    if own:
        listed = _public_names(found.values if signed else np.abs(found.values), P, not signed)
        if P is not None:
            names = np.where(found.weights > faintest, listed[found.members], -1)
            if not signed and (listed >= 0).sum() >= 2:
                # Behind masks public vectors tell the sign of every value.
                plus, minus = _agreement(found.values, P, listed)
                signed = bool((plus != minus).all())
                signs = np.where(plus, 1.0, -1.0) if signed else signs
        W.data[W.data <= (faintest if found.exact else faint)] = 0
    if found.exact:
        # A record that one row alone uses takes whatever that row has.
        W = sparse.csr_array(sparse.diags_array(found.fits.astype(np.float64)) @ W)
        lone = (W > 0).sum(axis=0) == 1
        W = sparse.csr_array(sparse.diags_array((W @ lone == 0).astype(np.float64)) @ W)
    W.eliminate_zeros()
    chosen = np.flatnonzero((listed < 0) & (np.asarray((W > 0).sum(axis=0)).ravel() > 0))
    weights = sparse.csr_array(W[:, chosen])
    x, error = found.values[chosen] * signs, found.error()[chosen]
    # 2. The certificate, or standard errors.
    explained, noise = int(found.fits.sum()), found.noise
    sure = error <= 0.5 * rms(x)
    kind = "private vectors" if P is not None or not scheme.k_public else "vectors"
    if found.exact:
        judged = certify(
            encodings, x, weights.astype(bool), P, names, weights=weights if own else None
        )
        text = f"{int(judged.verified.sum())} of {len(x)} {kind} verified; {explained} of {m} "
        text += f"encodings explained exactly as mixtures of {k}"
        text += ", weights found with them" if own else ""
        facts = {**judged.evidence, **facts}
    else:
        judged = Recovery(
            vectors=x.astype(np.float32),
            status=np.where(sure, UNRESOLVED, AMBIGUOUS).astype("<U10"),
            signed=signed,
            members=weights.astype(bool),
            residual=np.full(len(x), noise / rms(encodings.values)),
            reasons=tuple(
                f"known to about ±{size:.2g} per value: the encodings carry noise of about "
                f"{noise:.2g}"
                if good
                else "the encodings that use it do not determine it"
                for size, good in zip(error, sure, strict=True)
            ),
            attack=NAME,
            explanation="",
            weights=weights if own else None,
        )
        text = f"{int(sure.sum())} {kind} recovered to about ±{np.median(error):.2g} per value; "
        text += f"{explained} of {m} encodings explained as mixtures of {k} up to noise of about "
        text += f"{noise:.2g}, so that nothing is exact"
        facts = {**facts, "noise": noise, "standard_error": error.tolist()}
    if "masks" in facts:
        text += f"; {facts['masks']} masks found"
    if (listed >= 0).any():
        text += f"; {int((listed >= 0).sum())} further corners are public vectors"
    facts |= {
        "estimated_n_private": len(x),
        "encodings_explained": explained,
        "equations": explained * encodings.d,
        "unknowns": found.values.size + own * explained * (k - 1),
    }
    return replace(
        judged, signed=signed, attack=NAME, explanation=text, seconds=clock.seconds,
        evidence=facts, explained=explained, exact=found.exact,
    )  # fmt: skip


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
