"""Which scheme made these encodings? From the values alone.

    identify(values) → [(scheme, evidence), …], the best first; [] for what looks like noise

A scheme is believed for what it explains: for each number of records k, the smallest first,

    kept      mixtures as they stand: corners of a simplex, or an overcomplete dictionary
              (`unveil.mixing`); the weights that come with them tell equal ones from own ones
    masked    rows that share one of a pool of sign masks, and mixtures below them
    hidden    equal weights by exact relations, own weights by `mixing.hidden`; then equal weights
              up to noise, at the k that moments suggest
    alone     encodings that repeat each other and share nothing else: one record each

and only if the same procedure does not explain as much once every column is permuted by itself, nor
as normal rows with the same covariances. That keeps the columns, or how they go together, and
breaks every mixture, so whatever is reached then says nothing of rows: pure noise, values in few
levels and low rank are recognised without a rule for each. Cost: that of the attacks tried, and
once or twice more for what explains.

A public part is not looked for. Equal weights have two readings whatever the data are: means of k
of n records are means of the n − k others, with (Σx − (n−k)·x_i)/k in place of x_i. The smaller k
is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.stats import hypergeom

from unveil.checks import InputError, Rng, child, root
from unveil.encodings import Encodings
from unveil.engine.blocks import one_blas_thread
from unveil.mixing.corners import find_corners
from unveil.mixing.dictionary import reproduced, sketch_dictionary
from unveil.mixing.hidden import find_hidden, squared_correlations
from unveil.mixing.masks import mask_groups, relative_masks
from unveil.mixing.model import Mixture, rank, rms, spectrum
from unveil.recovery import Recovery
from unveil.scheme import Scheme, Signs

Values = NDArray[np.float32]


class Candidate(NamedTuple):
    """A scheme and what speaks for it, in words."""

    scheme: Scheme
    evidence: str


def identify(
    values: ArrayLike,
    rng: Rng = None,
    *,
    most: int = 6,
    memory_limit: int | None = None,
) -> list[Candidate]:
    """Schemes that explain the encodings, the best first; empty where none does.

    Parameters
    ----------
    values : (m, d)
        The encodings.
    most : int
        Records per encoding that are tried at most; published schemes mix 2 to 4.

    Examples
    --------
    >>> import numpy as np, unveil
    >>> from unveil.identify import identify
    >>> scheme = unveil.Scheme(2, weighting="dirichlet", signs="kept")
    >>> sim = unveil.simulate(scheme, n_private=20, m=200, d=60, rng=0)
    >>> found = identify(sim.encodings.values, rng=0)[0].scheme
    >>> found.k_private, found.signs, found.fixed_weights
    (2, 'kept', False)
    >>> identify(np.random.default_rng(0).standard_normal((60, 40)), rng=0)
    []
    """
    Y = np.ascontiguousarray(values, np.float32)
    once = np.sort(np.unique(Y, axis=0, return_index=True)[1])
    search = _Search(root(rng), most, memory_limit)
    # Encodings released several times say nothing new, unless all are.
    different = repeated_records(Y)
    if len(once) < len(Y) and not different:
        Y = Y[once]
    if min(Y.shape) < 4 or not np.ptp(Y):
        return []
    readings = sorted(_believed(Y, search), key=lambda one: one.worth, reverse=True)
    if not readings and different:
        words = f"{len(Y)} encodings are {different} different ones, repeated, and share nothing "
        words += "else: one record each"
        return [Candidate(Scheme(1, weighting="convex", signs=signs_of(Y)), words)]
    return [Candidate(one.scheme, one.words(len(Y))) for one in readings]


def contradiction(encodings: Encodings, recovery: Recovery, *, most_values: int = 2_000_000) -> str:
    """What speaks against the scheme that was stated, in one sentence; empty: nothing that is
    quickly seen.

    Signs and weights that came back are looked at always. Where nothing was verified and little is
    explained, `identify` is asked, up to `most_values` values.
    """
    stated, values = encodings.scheme, encodings.values
    m, k = encodings.m, stated.k_private
    seen = signs_of(values[:: -(-m // 1000)])
    negative = float((values < 0).mean())
    if stated.signs in ("absolute", "random") and seen == "kept" and 0.1 <= negative <= 0.9:
        return (
            f"the encodings contradict signs={stated.signs!r}: signs of different encodings go "
            "together, they are kept or share a mask"
        )
    if stated.signs == "kept" and seen == "random" and recovery.attack != "mixing":
        return (
            "the encodings contradict signs='kept': signs of different encodings agree no more "
            "often than fair coins"
        )
    if recovery.weights is not None and recovery.exact and 2 * recovery.explained >= m:
        factor = 1 / np.maximum(np.asarray(recovery.weights.sum(axis=1)).ravel(), 1e-30)
        shares = sparse.csr_array(recovery.weights.multiply(factor[:, None]))
        counts = np.asarray((shares > 0.02).sum(axis=1)).ravel()
        usual = int(np.median(counts[counts > 0])) if counts.any() else k
        if not stated.k_public and usual < k:
            return (
                f"the encodings contradict k_private={k}: most mix {usual} of {len(recovery)} "
                "records"
            )
        full = shares[np.flatnonzero(counts == k)]
        apart = np.abs(full.data[full.data > 0.02] - 1 / max(k, 1))
        if k > 1 and not stated.k_public and apart.size and np.median(apart) < 1e-3:
            return f"the encodings contradict weighting={stated.weighting!r}: weights are equal"
    settled = recovery.verified.any() or (recovery.exact and recovery.explained >= 0.99 * m)
    # Nor does a wrong scheme fit nearly all encodings up to little noise: where they mix one record
    # more than stated, it leaves 1/(k + 1) of their power.
    noise = float(recovery.evidence.get("noise", np.inf))
    size = float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))
    settled = settled or (recovery.explained >= 0.9 * m and noise <= 0.8 * size / np.sqrt(k + 1))
    if settled or values.size > most_values or recovery.attack == "natural" or stated.k_public:
        return ""
    for scheme, evidence in identify(values, rng=0)[:1]:
        against = []
        if scheme.k_private != k:
            against.append(f"k_private={k}")
        if (scheme.signs == "kept") != (stated.signs == "kept"):
            against.append(f"signs={stated.signs!r}")
        if scheme.k_private > 1 and scheme.fixed_weights != stated.fixed_weights:
            against.append(f"weighting={stated.weighting!r}")
        if against:
            return f"the encodings contradict {' and '.join(against)}: {evidence}"
    return ""


def signs_of(values: Values, *, sample: int = 1500, sigmas: float = 8.0) -> Signs:
    """ "absolute" where no value is negative, "random" where fair coins explain all signs, else
    "kept" (or masks of a pool).

    Given the magnitudes fair coins leave ρ² of two unit rows the mean Σ u_i²·u_j², and the quotient
    is about χ² with one degree of freedom. Summed over the pairs of a `sample` of rows it must be
    `sigmas` standard deviations above that.
    """
    if float(values.min()) >= 0:
        return "absolute"
    m = len(values)
    Y = values[np.unique(np.linspace(0, m - 1, min(m, sample)).astype(np.int64))]
    if len(Y) < 2 or Y.shape[1] < 20:
        return "kept"
    return "kept" if float(coin_squares(Y).sum()) / 2 > coin_bound(len(Y), sigmas) else "random"


def coin_squares(Y: Values) -> NDArray[np.float64]:
    """(m, m) ρ² of every two rows in units of what fair coins leave; 0 on the diagonal."""
    unit = Y / np.maximum(np.linalg.norm(Y, axis=1, keepdims=True), np.float32(1e-30))
    power = unit**2
    chance = np.maximum((power @ power.T).astype(np.float64), 1e-30)
    square = (unit @ unit.T).astype(np.float64) ** 2 / chance
    np.fill_diagonal(square, 0)
    return np.asarray(square)


def coin_bound(m: int, sigmas: float = 8.0) -> float:
    """What the sum over all pairs of m rows stays below under fair coins."""
    pairs = m * (m - 1) / 2
    return float(pairs + sigmas * np.sqrt(2 * pairs) + sigmas)


def repeated_records(values: Values, *, alike: float = 0.9, most: int = 6000) -> int:
    """How many different encodings there are, where they repeat each other up to noise (correlation
    of magnitudes above `alike`) and are otherwise no more alike than chance leaves; else 0."""
    m, d = values.shape
    Y = np.abs(values)
    if m > most or (d < 20 and 2 * len(np.unique(Y, axis=0)) > m):
        return 0
    centred = Y - Y.mean(axis=1, keepdims=True)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), np.float32(1e-30))
    group = connected_components(sparse.csr_array(centred @ centred.T > alike), directed=False)[1]
    first = np.unique(group, return_index=True)[1]
    # Of a chain of rows, each like the next one, most are not like the first.
    like_first = np.einsum("ij,ij->i", centred, centred[first][group]) > alike
    if len(first) > 0.9 * m or like_first.mean() < 0.9:
        return 0
    if len(first) < 4:
        return len(first)
    Z = squared_correlations(Y[first])[np.triu_indices(len(first), 1)]
    return 0 if Z.mean() > 5 * Z.std() / np.sqrt(len(Z)) else len(first)


def likely_k(magnitudes: Values, most: int = 6) -> int:
    """How many records an encoding mixes with equal weights, by two moments of how alike encodings
    are.

    Pairs that share s of k records have z = s/k. E[z²] tells the number of records for every k, and
    then E[z⁴] must agree. Two halves of the values have independent errors, and the product of
    their estimates no bias.
    """
    halves = [squared_correlations(np.ascontiguousarray(magnitudes[:, h::2])) for h in (0, 1)]
    first, second = (half[np.triu_indices(len(magnitudes), 1)] for half in halves)
    once, twice = float((first + second).mean()) / 2, float((first * second).mean())
    if once <= 0 or twice <= 0:
        return 2
    off = {}
    for k in range(2, most + 1):
        n, s = np.arange(k, 2000)[:, None], np.arange(k + 1)
        chance = hypergeom.pmf(s, n, k, k)
        powers = [(chance * (s / k) ** power).sum(axis=1) for power in (2, 4)]
        off[k] = abs(np.log(powers[1][int(np.abs(powers[0] - once).argmin())] / twice))
    return min(off, key=lambda k: off[k])


@dataclass(frozen=True, eq=False)
class _Search:
    """What all procedures share."""

    seed: np.random.SeedSequence
    most: int
    memory_limit: int | None


@dataclass(frozen=True, eq=False)
class _Reading:
    """A scheme with what it explains: how many encodings, by how many records, with which noise
    relative to the encodings (0: to rounding); weights in words."""

    scheme: Scheme
    explained: int
    records: int
    noise: float
    weights: str

    @property
    def worth(self) -> tuple[float, float, int]:
        """Less noise first (in steps of a factor 1.5), then encodings beyond what records cost,
        then fewer records in each."""
        step = 0.0 if not self.noise else round(np.log(self.noise) / np.log(1.5)) + 1000.0
        return -step, self.explained - self.records, -self.scheme.k_private

    def words(self, m: int) -> str:
        signs = {
            "kept": "mixtures hold with the signs that values have",
            "masked": f"{self.scheme.masks} groups of encodings, each behind one sign mask",
        }.get(self.scheme.signs, "signs are hidden")
        noise = f"up to noise of {self.noise:.2g} of their size" if self.noise else "to rounding"
        return (
            f"{self.explained} of {m} encodings are mixtures of {self.scheme.k_private} out of "
            f"{self.records} records {noise}, and columns permuted are not; {self.weights}; {signs}"
        )


def _believed(Y: Values, search: _Search) -> Iterator[_Reading]:
    """Readings that arrays without mixtures do not reach. The first that is exact ends the search.

    Those arrays are Y with every column permuted by itself and, where a reading is up to noise,
    normal rows with the means and covariances of Y: rows of columns that go together lie near a
    plane of few dimensions, where every row is nearly a mixture of a few corners. They may be
    explained up to noise of their own size; less must be left.
    """
    random = child(search.seed, "chance")
    permuted = random.permuted(Y, axis=0)
    for procedure in (_signed, _hidden_equal, _hidden_own, _hidden_noisy):
        reading = procedure(Y, search)
        if reading is None or _reaches(procedure(permuted, search), reading):
            continue
        if reading.noise and _reaches(procedure(_normal_rows(Y, random), search), reading):
            continue
        yield reading
        if not reading.noise:
            return


def _reaches(chance: _Reading | None, reading: _Reading) -> bool:
    return chance is not None and reading.noise >= 0.7 * chance.noise


def _normal_rows(Y: Values, random: np.random.Generator) -> Values:
    """Normal rows with the means and covariances of Y; not negative where Y is not."""
    mean = Y.mean(axis=0)
    draws = random.standard_normal((len(Y), len(Y)), np.float32) / np.float32(np.sqrt(len(Y)))
    rows = mean + draws @ (Y - mean)
    return np.asarray(rows if float(Y.min()) < 0 else np.abs(rows))


def _signed(Y: Values, search: _Search) -> _Reading | None:
    """Signs kept or masked. A record behind several masks is as many records where masks are not
    seen, so masks are believed where they halve the number."""
    kept, masked = _kept(Y, search), _masked(Y, search)
    if kept is None or masked is None:
        return kept or masked
    return masked if 2 * masked.records <= kept.records and masked.noise <= kept.noise else kept


def _kept(Y: Values, search: _Search) -> _Reading | None:
    if signs_of(Y) == "random":
        return None
    if float(Y.min()) >= 0:
        # Magnitudes of records without negative values are sums too, and of low rank then.
        sizes = spectrum(Y.astype(np.float64))[0]
        falls = sizes[:-1] / np.maximum(sizes[1:], 1e-11 * sizes[0])
        if rank(sizes) >= min(Y.shape) and falls[2 : max(3, len(falls) // 2)].max(initial=0) < 4:
            return None
    return _mixtures(Y, "kept", search)


def _masked(Y: Values, search: _Search) -> _Reading | None:
    if float(Y.min()) >= 0:
        return None
    groups = mask_groups(Y)
    rows = np.flatnonzero(groups >= 0)
    if groups.max() < 1 or len(rows) < 0.9 * len(Y):
        return None
    below = Y[rows] * relative_masks(Y, groups)[groups[rows]]
    reading = _mixtures(below, "kept", search, least=2)
    if reading is None:
        return None
    scheme = replace(reading.scheme, signs="masked", masks=int(groups.max()) + 1)
    return replace(reading, scheme=scheme)


def _mixtures(
    values: Values, signs: Signs, search: _Search, *, least: int = 2, explains: float = 0.9
) -> _Reading | None:
    """The least k for which corners, or else a dictionary, explain nearly all encodings."""
    Y = values.astype(np.float64)
    Y = Y / np.maximum(np.sqrt(np.mean(Y**2, axis=0)), 1e-30)
    noisy: _Reading | None = None
    with one_blas_thread():
        for k in range(least, search.most + 1):
            found = find_corners(Y, k)
            if (found is None or not found.exact) and len(Y) > 4 * Y.shape[1] and k <= 3:
                found = reproduced(Y, sketch_dictionary(Y, k, 2 / (k + 1))) or found
            if found is None or found.fits.mean() < explains:
                continue
            if np.median((found.weights > 0.02).sum(axis=1)) < k or 2 * len(found.values) > len(Y):
                continue
            # Of few records more than k any rows near a plane are nearly mixtures.
            loud = found.noise > 0.5 * rms(found.values) or len(found.values) <= 2 * k
            if loud and not found.exact:
                continue
            reading = _reading_of(found, signs, rms(Y))
            if found.exact:
                return reading
            # With one record more there is a little less noise; that alone is no evidence.
            if noisy is None or reading.noise < 0.7 * noisy.noise:
                noisy = reading
    return noisy


def _reading_of(found: Mixture, signs: Signs, size: float) -> _Reading:
    k = found.members.shape[1]
    clear = found.weights[found.fits & (found.weights > 0.02).all(axis=1)]
    off = float(np.median(np.abs(clear - 1 / k).max(axis=1))) if len(clear) else 1.0
    equal = off < (1e-3 if found.exact else 0.05)
    words = "weights are equal"
    if not equal:
        low, high = np.quantile(clear, (0.05, 0.95)) if clear.size else (0.0, 1.0)
        words = f"every encoding has weights of its own, mostly from {low:.2f} to {high:.2f}"
    scheme = Scheme(k, weighting="convex" if equal else "unknown", signs=signs)
    noise = 0.0 if found.exact else found.noise / size
    return _Reading(scheme, int(found.fits.sum()), len(found.values), noise, words)


def _hidden_own(Y: Values, search: _Search) -> _Reading | None:
    """Own weights, which have no relations: two or three records."""
    signs = _hidden_signs(Y)
    if signs is None:
        return None
    for k in (2, 3):
        with one_blas_thread():
            found = find_hidden(np.abs(Y), k, child(search.seed, f"own {k}"))
        if found is None or not found.exact or found.fits.mean() < 0.9:
            continue
        if np.median((found.weights > 0.02).sum(axis=1)) < k or 2 * len(found.values) > len(Y):
            continue
        reading = _reading_of(found, "absolute", rms(Y))
        if not reading.scheme.fixed_weights:
            scheme = Scheme(k, weighting="half-normal", signs=signs)
            return replace(reading, scheme=scheme)
    return None


def _hidden_equal(Y: Values, search: _Search) -> _Reading | None:
    """Equal weights by exact relations; whether there are any does not depend on k."""
    return _by_core(Y, search, "relations", range(2, search.most + 1))


def _hidden_noisy(Y: Values, search: _Search) -> _Reading | None:
    """Equal weights up to noise, at the k that moments suggest; one record less must leave clearly
    more noise, since k records are also k + 1 of which one is hardly there."""
    if len(Y) > 6000:
        return None
    likely = likely_k(np.abs(Y), search.most)
    best: _Reading | None = None
    for k in range(max(2, likely - 1), min(search.most, likely + 1) + 1):
        reading = _by_core(Y, search, "full", [k])
        if reading is not None and (best is None or reading.noise < best.noise / 1.5):
            best = reading
    return best


def _by_core(
    Y: Values, search: _Search, attack: str, ks: range | list[int], *, explains: float = 0.9
) -> _Reading | None:
    """The reading with most encodings beyond its records, of those that explain nearly all."""
    signs = _hidden_signs(Y)
    best: _Reading | None = None
    for k in ks if signs is not None else ():
        scheme = Scheme(k, weighting="convex", signs=signs or "absolute")
        recovery = exact_core(Encodings(Y, scheme, None), search)
        related = recovery is not None and bool(recovery.evidence.get("relations"))
        if attack == "relations" and k == ks[0] and not related:
            return None
        if recovery is None or recovery.explained < explains * len(Y):
            continue
        noise = 0.0 if recovery.exact else float(recovery.evidence.get("noise", 1.0)) / rms(Y)
        reading = _Reading(scheme, recovery.explained, len(recovery), noise, "weights are equal")
        if 2 * reading.records <= len(Y) and (best is None or reading.worth > best.worth):
            best = reading
        # Records and sums of two, k − 1 in each, are a reading of k as well, mostly unproved.
        if recovery.exact and 2 * recovery.verified.sum() > len(recovery):
            break
    return best


def _hidden_signs(Y: Values) -> Signs | None:
    """How signs are hidden; None where they are not."""
    seen = signs_of(Y)
    return None if seen == "kept" else seen


def exact_core(encodings: Encodings, search: _Search, *, seconds: float = 30.0) -> Recovery | None:
    """What the exact core makes of encodings with equal weights; None: too large for it."""
    from unveil.exact import recover_exact

    try:
        return recover_exact(
            encodings,
            rng=child(search.seed, "core"),
            time_limit=seconds,
            memory_limit=search.memory_limit,
        )
    except InputError:
        return None
