"""Lint: what an implementation gives away besides the mathematics, each with consequence and cure.

Read off the encodings alone (`lint_encodings`):

    repeats        rows with equal magnitudes, or subsets drawn twice
    self-pairs     a record mixed with itself has twice the power of others, k = 2
    sign masks     with a fair coin per value the squared correlation of two signed rows u, v of
                   norm 1 has mean Σ u²v²; a mask used twice lets more through
    weights        the same in every encoding: overlaps take k + 1 values
    public prefix  N draws from a pool of P are all among the first q with probability (q/P)^N

Read off the encoder itself (`lint_encoder`), which is fed data made for that:

    unit vectors   record i is the i-th unit vector, so that an encoding *is* its weights
    ones           every value is 1, so that the signs of an encoding are its mask
    seeds          two calls without a seed must differ, whatever state NumPy's global generator is
                   in; no seed that people write by hand, nor the clock, may give a release again

Thresholds are six or seven standard deviations: a false alarm in about a million releases.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import comb, expm1, log1p
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unveil.auditing.release import Encoder, run_encoder
from unveil.auditing.result import Finding
from unveil.checks import InputError, as_vectors, row_blocks
from unveil.encodings import Encodings
from unveil.records import Progress, Supports

Floats = NDArray[np.float32]
_KEPT = Finding(
    "Signs are kept, as in MixUp.",
    "high",
    "Encodings are plain sums of records, and linear algebra recovers all of them.",
    "Hide the signs (they are still not enough), or do not release.",
)
_REPLACED = "Draw the records of a subset without replacement."
_SYSTEM = "Draw from a generator seeded by the operating system: numpy.random.default_rng()."
_SHARED = "Where two encodings have one mask their signed product shows which records they share."


def _fine(what: str) -> Finding:
    return Finding(what, "fine", "")


def lint_encodings(
    encodings: Encodings,
    *,
    supports: Supports | None = None,
    n_public: int = 0,
    chosen: NDArray[np.int64] | None = None,
    n_private: int = 0,
    weights: bool = True,
) -> tuple[Finding, ...]:
    """What these encodings show of how they were made, besides the mathematics.

    Parameters
    ----------
    encodings : Encodings
        With the scheme that is said to have made them.
    supports : Supports or None
        Which public vectors each encoding mixes, learned or known.
    n_public : int
        Public vectors to choose from; 0: their use is not looked at.
    chosen : array of shape (m, k_private) or None
        The true subsets of records, where they are known.
    n_private : int
        Records to choose from; with `chosen` only.
    weights : bool
        Whether the scheme's word on weights is repeated.

    Returns
    -------
    tuple of Finding
        What, how grave ("high", "medium", "low", "fine"), the consequence and the cure.

    Examples
    --------
    >>> import unveil
    >>> scheme = unveil.Scheme(k_private=2, signs="kept")
    >>> sim = unveil.simulate(scheme, n_private=30, n_public=0, m=40, d=100, rng=0)
    >>> found = unveil.lint_encodings(sim.encodings)
    >>> [finding.what for finding in found if finding.severity == "high"]
    ['Signs are kept, as in MixUp.']
    """
    repeats = _repeated_rows(encodings.values) if chosen is None else None
    if chosen is not None:
        # Where it is known who was mixed, subsets say more than equal rows do.
        subsets = np.sort(chosen, axis=1)
        count = len(subsets) - len(np.unique(subsets, axis=0))
        repeats = _repeated_subsets(count, len(subsets), comb(n_private, subsets.shape[1]))
    found = [repeats, _self_pairs(encodings), _sign_masks(encodings)]
    if weights:
        found.append(_weights(encodings.scheme.fixed_weights))
    # The public part, as far as it is sure: a guess would accuse an honest encoder.
    if supports is not None and n_public and supports.indices.size:
        rows = slice(None) if supports.certain is None else supports.certain
        used = supports.indices[rows]
        found.append(_public_prefix(used[used >= 0], n_public))
    return tuple(finding for finding in found if finding is not None)


def lint_encoder(
    encoder: Encoder,
    n_private: int = 50,
    n_public: int = 0,
    *,
    released: ArrayLike | None = None,
    private: ArrayLike | None = None,
    public: ArrayLike | None = None,
    seconds: float = 10.0,
    progress: Progress | None = None,
) -> tuple[Finding, ...]:
    """What an encoder gives away, found by calling it on records that show it.

    Parameters
    ----------
    encoder : function or object with `encode`
        encoder(private, public, rng) → encodings (m, values).
    n_private, n_public : int
        How many records and public vectors it is called with.
    released : array of shape (m, d) or None
        A release it made of `private`: seeds are then tried against it.
    private, public : arrays or None
        What `released` was made of.
    seconds : float
        Time for guessing seeds.
    progress : callable or None
        progress(stage, done, total), called as seeds are tried.

    Returns
    -------
    tuple of Finding
        What, how grave ("high", "medium", "low", "fine"), the consequence and the cure.

    Raises
    ------
    InputError
        Where the encoder fails, or returns something else than encodings.

    Examples
    --------
    >>> import unveil
    >>> found = unveil.lint_encoder(lambda private, public, rng: private, 20)
    >>> found[0].what
    'Every encoding is one record by itself: nothing is mixed.'
    """
    n, p = n_private, n_public

    def run(data: Floats, seed: int) -> Floats:
        pool = data[n:] if p else None
        return run_encoder(encoder, data[:n], pool, np.random.default_rng(seed))

    weights = np.abs(run(np.eye(n + p, dtype=np.float32), 7))
    ones = np.ones((n + p, 64), np.float32)
    masks = run(ones, 8)
    kept = bool((masks > 0).all() and (run(-ones, 8) < 0).all())
    ordered = np.sort(weights[:, :n], axis=1)
    # Far above rounding, far below what is drawn anew.
    same = np.ptp(ordered, axis=0).max() < 1e-4 * max(float(ordered.max()), 1e-30)
    found: list[Finding | None] = [
        *_subsets(weights[:, :n] > 1e-6),
        _weights(bool(same)),
        _KEPT if kept else _masks(masks),
    ]
    # The release is tried, or what the encoder makes of normal numbers.
    data = np.random.default_rng(3).standard_normal((12, 64)).astype(np.float32)
    target, others = None, data
    if released is not None and private is not None:
        target, data = as_vectors(released, "released"), as_vectors(private, "private")
        others = public  # type: ignore[assignment]
    found += _seeds(encoder, data, others, target, seconds, progress)
    if p and weights[:, n:].any():
        found.append(_public_prefix(np.nonzero(weights[:, n:] > 0)[1], p))
    return tuple(finding for finding in found if finding is not None)


def _repeated_rows(values: Floats) -> Finding:
    # Hashes alone: equal rows have equal ones, and a chance hit is one in 10¹⁹.
    seen = {hash(row.tobytes()) for _, block in row_blocks(values) for row in np.abs(block)}
    if len(seen) == len(values):
        return _fine("No encoding is repeated.")
    what = f"{len(values) - len(seen)} encodings repeat another one, up to signs."
    why = "The same records were mixed twice: with random signs two copies show where they differ."
    return Finding(what, "medium", why, "Draw subsets without repetition.")


def _repeated_subsets(count: int, m: int, subsets: int) -> Finding:
    """`count` of m encodings repeat one of so many subsets; m fair draws from N repeat
    m − N(1 − (1 − 1/N)^m)."""
    expected = m - 1.0
    if subsets > 1:
        expected = max(0.0, m + subsets * expm1(m * log1p(-1 / subsets))) if subsets < 1e18 else 0.0
    if not count:
        return _fine("No subset of records is drawn twice.")
    words = f"{count} of {m} encodings repeat a subset of records"
    if count <= expected + 6 * np.sqrt(expected) + 1:
        return _fine(f"{words}, as chance has it: {expected:.1f} are expected.")
    what = f"{words}; {expected:.1f} repeats are to be expected by chance."
    why = "A second look at the same mixture: noise and fresh public parts average out."
    return Finding(what, "high", why, "Draw subsets uniformly, and never one twice.")


def _self_pairs(encodings: Encodings) -> Finding | None:
    """k_private = 2 without a public part: rows with twice the power of the typical one."""
    scheme = encodings.scheme
    if scheme.k_private != 2 or scheme.k_public or encodings.m < 20 or encodings.d < 100:
        return None
    power = np.concatenate(
        [np.einsum("ij,ij->i", b, b, dtype=np.float64) for _, b in row_blocks(encodings.values)]
    )
    ratio = power / max(float(np.median(power)), 1e-30)
    # 1.4826 median deviations are one standard deviation, for normal values. Records of different
    # power, as images have, widen the peak: then a second one cannot be told from its tail.
    spread = 1.4826 * float(np.median(np.abs(ratio - 1)))
    if spread > 0.08:
        return None
    twice = int((np.abs(ratio - 2) < 6 * spread + 0.02).sum())
    if not twice:
        return _fine("No encoding mixes a record with itself.")
    what = (
        f"{twice} of {encodings.m} encodings have twice the power of others: a record with itself."
    )
    why = "Such an encoding is the record itself, with its signs hidden and nothing mixed in."
    return Finding(what, "high", why, _REPLACED)


def _sign_masks(encodings: Encodings, most: int = 1500) -> Finding | None:
    """Independent random signs leave no correlation between signed rows; most: rows compared,
    evenly over the release, since a slip may begin in the middle."""
    m = encodings.m
    Y = encodings.values[np.unique(np.linspace(0, m - 1, min(m, most)).astype(np.int64))]
    if not (Y < 0).any():
        return _fine("Signs are hidden.")
    # Noise that was added to magnitudes makes small ones negative, and is no mask.
    if np.mean(np.minimum(Y, 0) ** 2) < 0.02 * np.mean(Y**2):
        return _fine("Signs are hidden; what is negative is small, as noise makes it.")
    if len(Y) < 2 or encodings.d < 20:
        return None
    if encodings.scheme.signs == "kept":
        return _KEPT
    unit = (Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), 1e-30)).astype(np.float64)
    square = (unit @ unit.T) ** 2 / np.maximum(unit**2 @ (unit**2).T, 1e-30)
    np.fill_diagonal(square, 0)
    pairs = len(Y) * (len(Y) - 1) / 2
    # The quotient is about χ² with one degree of freedom, whatever the data.
    if float(square.sum()) / 2 <= pairs + 8 * np.sqrt(2 * pairs) + 8:
        return _fine("Sign masks are independent of each other.")
    linked = int((square > 7.0**2).any(axis=1).sum())
    how = f"{linked} of {len(Y)} encodings correlate with others" if linked else "they correlate"
    what = f"Sign masks are not independent: {how}, signs included."
    return Finding(what, "high", _SHARED, f"A fresh mask for every encoding. {_SYSTEM}")


def _weights(same: bool) -> Finding:
    if not same:
        return _fine("Weights differ from encoding to encoding.")
    why = "Overlaps take few values, which makes them easy to read."
    cure = "Draw weights anew for every encoding. This makes attacks harder, not impossible."
    return Finding("Weights are the same in every encoding.", "low", why, cure)


def _public_prefix(used: NDArray[np.int64], n_public: int) -> Finding | None:
    """Whether the public vectors used, one entry per use, all come from the beginning of the
    list: the slip of taking the first rows of a file."""
    if not used.size or n_public < 2:
        return None
    last = int(used.max()) + 1
    if used.size * np.log(last / n_public) > np.log(1e-6):
        return _fine("Public vectors are drawn from the whole set.")
    what = f"Only the first {last} of {n_public} public vectors are used."
    why = f"The search for the public part is {n_public / last:.0f} times smaller."
    return Finding(what, "medium", why, "Draw public vectors from the whole set.")


def _subsets(used: NDArray[np.bool_]) -> list[Finding]:
    """used (m, n): which records an encoding mixes, read off unit vectors."""
    sizes = used.sum(axis=1)
    (m, n), k = used.shape, int(sizes.max(initial=0))
    if not k:
        nothing = "There is nothing to protect in them."
        return [Finding("Encodings do not depend on the private records.", "low", nothing)]
    if k == 1:
        what = "Every encoding is one record by itself: nothing is mixed."
        why = "Such an encoding is the record, hidden by its signs at most."
        return [Finding(what, "high", why, "Mix several records, or do not release.")]
    found = []
    if short := int((sizes < k).sum()):
        what = f"{short} of {m} encodings mix fewer than {k} different records: one is drawn twice."
        hidden = "A record mixed with itself is hidden by nothing but its signs."
        found.append(Finding(what, "high", hidden, _REPLACED))
    repeats = m - len(np.unique(np.packbits(used, axis=1), axis=0))
    repeated = _repeated_subsets(repeats, m, comb(n, k))
    found += [repeated] if repeated.severity == "high" else []
    # Uses of a record are binomial; six standard deviations leave one chance in 10⁸ each.
    mean = sizes.sum() / n
    if uneven := int((np.abs(used.sum(axis=0) - mean) > 6 * np.sqrt(mean) + 2).sum()):
        what = f"{uneven} of {n} records are used far more or far less often than the others."
        often = "Records used more often are easier to recover."
        found.append(Finding(what, "medium", often, "Draw records uniformly."))
    return found or [_fine("Subsets are drawn without replacement, evenly and without repetition.")]


def _masks(values: Floats) -> Finding:
    """values: encodings of ones, so that signs are masks."""
    signs, sizes = values < 0, np.abs(values)
    if not signs.any():
        return _fine("Signs are hidden, or every one is kept.")
    # Encodings of ones all have about one size; far smaller values are crossing zero, by noise.
    if float(sizes.min()) < 0.1 * float(np.median(sizes)):
        return _fine("Values are noisy, so that masks of signs do not show.")
    masks = len(np.unique(np.packbits(signs, axis=1), axis=0))
    constant = int((signs.all(axis=0) | ~signs.any(axis=0)).sum())
    whole = int((signs.all(axis=1) | ~signs.any(axis=1)).sum())
    if masks == 1:
        what = "The same sign mask is used for every encoding."
    elif masks < len(values):
        what = f"Only {masks} sign masks are used."
    elif constant:
        what = f"The sign of {constant} of {signs.shape[1]} values is the same in every encoding."
    elif 2 * whole > len(values):
        what = "The mask flips whole encodings, not single values."
    else:
        return _fine("Every encoding has its own sign mask.")
    return Finding(what, "high", _SHARED, "Draw one fair coin per value and encoding.")


def _seeds(
    encoder: Encoder,
    data: Floats,
    others: Any,
    target: Floats | None,
    seconds: float,
    progress: Progress | None,
) -> list[Finding]:
    """What chance there is in the encoder, and whether it can be guessed: of `target`, or of a call
    without a seed."""

    def run(seed: Any = None) -> Floats:
        return run_encoder(encoder, data, others, seed)

    first = run()
    fixed = np.array_equal(first, run())
    if fixed and all(np.array_equal(first, run(np.random.default_rng(s))) for s in (1, 2)):
        what = "Encodings are the same whatever the seed: nothing is drawn, or the seed is fixed."
        return [Finding(what, "high", "Who has the code can encode a guess and compare.", _SYSTEM)]
    guess = _guessed(run, first if target is None else target, seconds, progress)
    if fixed:
        what = "Two calls without a seed return the same encodings: the seed is fixed in the code."
        why = (
            "Who has the code knows every subset, weight and mask; what is left is linear algebra."
        )
        return [Finding(what, "high", why, _SYSTEM), guess]
    both = []
    for _ in range(2):
        with _same_global_state():
            both.append(run())
    drawn = _fine("Two calls without a seed differ, and the global generator plays no part.")
    if np.array_equal(*both):
        what = "The encoder draws from NumPy's global generator."
        why = "Any numpy.random.seed in the program, often 0 or 42, fixes all subsets and masks."
        drawn = Finding(what, "medium", why, _SYSTEM)
    return [drawn, guess]


def _guessed(
    run: Any, target: Floats, seconds: float, progress: Progress | None, small: int = 1000
) -> Finding:
    """Try what an attacker would: small seeds, and the last minutes as seconds since 1970."""
    now = int(time.time())
    guesses = [*range(small + 1), *range(now, now - 600, -1)]
    start, tried = time.perf_counter(), 0
    for tried, guess in enumerate(guesses, 1):
        for seed in (guess, np.random.default_rng(guess)):
            try:
                same = np.array_equal(run(seed), target)
            except InputError:  # an encoder may take one kind of seed only
                continue
            if same:
                what = f"The encodings are those of seed {guess}."
                why = f"It is found in {tried} tries, and with it every subset, weight and mask."
                return Finding(what, "high", why, f"{_SYSTEM} Keep its state secret.")
        if progress:
            progress("seeds", tried, len(guesses))
        if time.perf_counter() - start > seconds:
            break
    return _fine(f"None of {tried} seeds an attacker would try first gives these encodings.")


@contextmanager
def _same_global_state() -> Iterator[None]:
    """NumPy's global generator in one fixed state, and afterwards as it was. Only to see whether
    the encoder draws from it."""
    module: Any = np.random
    before = module.get_state()
    module.seed(12345)
    try:
        yield
    finally:
        module.set_state(before)
