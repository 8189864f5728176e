"""The family of mixing schemes: what comes back from each, beside what must.

`python -m benchmarks.schemes [part …]`, parts: laws, mixup, singularized, found. All of them when
none is named; `found` takes half an hour. docs/schemes.md shows the tables.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
from benchmarks.table import Row, show

import unveil

FIRST = 60000
"""Fresh seeds from here on."""
N, M, D = 100, 1000, 1024
"""Records, encodings and pixels of the MixUp rows."""
NOISE = 0.05
"""Standard deviation per pixel; records have 1."""
TIMES = 1.3
"""Error under noise, in units of least squares with subsets and weights known."""


def mixup() -> list[Row]:
    """Signs kept, own λ per row by Beta(α, α), Dirichlet(1, …, 1) beyond two."""
    out = [_mixup(2, alpha, 0.0) for alpha in (0.2, 1.0, 8.0)]
    out += [_mixup(k, 1.0, 0.0) for k in (3, 4, 6)]
    out += [_mixup(k, 1.0, NOISE) for k in (2, 3, 4)]
    return [*out, *(_mixup(2, 1.0, 0.0, m) for m in (500, 300, 250))]


def _mixup(k: int, alpha: float, noise: float, m: int = M) -> Row:
    truth, W, encodings = mixtures(k, alpha, noise, m, FIRST)
    start = time.perf_counter()
    recovery = unveil.recover(encodings, rng=0)
    seconds = time.perf_counter() - start
    what = f"MixUp k={k}, α={alpha:g}, noise {noise:g}, m={m}"
    if not noise:
        scores = unveil.score(recovery, truth)
        measured = f"{scores.exact} of {N} exact, {scores.wrong} wrong, {seconds:.1f} s"
        asked = m == M
        return (
            what,
            "all 100, 0 wrong" if asked else "0 wrong",
            measured,
            not scores.wrong and (scores.exact == N or not asked),
        )
    ideal = np.linalg.lstsq(W, encodings.values, rcond=None)[0]
    floor = float(np.sqrt(np.mean((ideal - truth) ** 2)))
    error = np.inf
    if len(recovery) == N:
        apart = [np.square(truth - x).mean(axis=1).min() for x in recovery.vectors]
        error = float(np.sqrt(np.mean(apart)))
    measured = f"{error / floor:.3f} ×, {seconds:.1f} s"
    return what, f"{TIMES} × least squares with all known", measured, error <= TIMES * floor


def mixtures(
    k: int, alpha: float, noise: float, m: int, seed: int
) -> tuple[np.ndarray, np.ndarray, unveil.Encodings]:
    """Records, weights (m, n) and encodings, drawn here and not by the library."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((N, D)).astype(np.float32)
    chosen = np.array([rng.choice(N, k, replace=False) for _ in range(m)])
    W = np.zeros((m, N))
    np.put_along_axis(W, chosen, rng.dirichlet(np.full(k, alpha), m), axis=1)
    values = W @ truth + noise * rng.standard_normal((m, D))
    return (
        truth,
        W,
        unveil.Encodings(values, unveil.Scheme(k, weighting="unknown", signs="kept")),
    )


def singularized() -> list[Row]:
    """Every record in two mixtures of a round, as y = (1 − λ)·x + λ·x', λ uniform up to α, noise of
    norm r; who is mixed with whom is not known. One round, then several."""
    cells = [(1, alpha, 0.0) for alpha in (0.05, 0.1, 0.25, 0.5)]
    cells += [(1, 0.25, r) for r in (1.6, 8.0)]
    cells += [(rounds, 0.5, 0.0) for rounds in (2, 3, 4, 6)]
    cells += [(6, 0.5, r) for r in (1.6, 8.0, 16.0)]
    return [_singularized(*cell) for cell in cells]


def _singularized(rounds: int, alpha: float, norm: float) -> Row:
    rng = np.random.default_rng(FIRST)
    truth = rng.standard_normal((N, D)).astype(np.float32)
    parts = []
    for _ in range(rounds):
        share = alpha * rng.random((N, 1))
        # A cyclic shift of a random order: nobody meets itself.
        order = rng.permutation(N)
        other = np.empty(N, np.int64)
        other[order] = np.roll(order, 1)
        noise = rng.standard_normal((N, D))
        noise *= norm / np.linalg.norm(noise, axis=1, keepdims=True)
        parts.append((1 - share) * truth + share * truth[other] + noise)
    values = rng.permutation(np.concatenate(parts))
    scheme = unveil.Scheme(2, weighting="unknown", signs="kept")
    recovery = unveil.recover(unveil.Encodings(values, scheme), rng=0)
    scores = unveil.score(recovery, truth)
    got = _share_off(recovery.vectors, truth)
    own = _share_off(values, truth)
    what = f"singularized, rounds {rounds}, α={alpha:g}, noise norm {norm:g}"
    measured = (
        f"{scores.exact} exact, {scores.wrong} wrong; error {got:.2f}, best encoding {own:.2f}"
    )
    return what, "0 wrong", measured, not scores.wrong


def _share_off(found: np.ndarray, truth: np.ndarray) -> float:
    """Median over records of the distance to the nearest vector, in units of the record."""
    if not len(found):
        return 1.0
    apart = [np.linalg.norm(found - x, axis=1).min() / np.linalg.norm(x) for x in truth]
    return float(np.median(apart))


DRAWS = 200_000
"""Of each law, ours and that of the sampler written from the description of the code."""
SURE = 1e-5
"""A p-value below it, of seven per case, is a wrong law."""


def laws() -> list[Row]:
    """Every law of weights against a sampler of its own, and against a wrong one."""
    from tests.encode.test_weights import alike, as_described, fdn, gradattack

    from unveil.encode.weights import dominant, draw_weights

    out: list[Row] = []

    def row(what: str, ours: np.ndarray, theirs: np.ndarray, same: bool) -> None:
        p = alike(ours, theirs)
        must = f"p > {SURE:g}" if same else "told apart"
        out.append((what, must, f"least p {p:.2g}", (p > SURE) == same))

    rng = np.random.default_rng
    for own, others in ((3, 3), (1, 3), (2, 4), (2, 2)):
        ours = draw_weights(unveil.Scheme(own, others, "released"), DRAWS, rng(1))
        theirs = as_described(own + others, DRAWS, rng(2))
        row(f"released ({own}, {others})", ours, theirs, True)
    ours = draw_weights(unveil.Scheme(3, 3, "released"), DRAWS, rng(1))
    row("released, bound on all private slots", ours, as_described(6, DRAWS, rng(2), 3), False)
    ours = draw_weights(unveil.Scheme(2, 4, "sorted"), DRAWS, rng(1))
    row("sorted as FDN draws", ours, fdn(6, DRAWS, rng(2)), True)
    wrong = -np.sort(-draw_weights(unveil.Scheme(6, 0, "half-normal"), DRAWS, rng(2)), axis=1)
    row("sorted, half-normal numbers", ours, wrong, False)
    for smallest in (0.0, 0.05):
        ours = dominant(DRAWS, unveil.Scheme(2, 2), rng(1), smallest=smallest)
        theirs = gradattack(4, DRAWS, rng(2), smallest)
        row(f"GradAttack's, smallest {smallest:g}", ours, theirs, True)
    row("GradAttack's without the bound", ours, gradattack(4, DRAWS, rng(2), 0.0), False)
    text = unveil.Scheme(2, 2, "half-normal", signs="masked", masks=16)
    sizes = np.abs(rng(2).normal(size=(DRAWS, 4)))
    theirs = sizes / sizes.sum(axis=1, keepdims=True)
    row("TextHide's", draw_weights(text, DRAWS, rng(1)), theirs, True)
    for alpha in (0.2, 1.0, 8.0):
        mixed = unveil.Scheme(2, weighting="dirichlet", signs="kept", alpha=alpha)
        first = rng(2).beta(alpha, alpha, DRAWS)
        theirs = np.column_stack([first, 1 - first])
        row(f"MixUp's Beta({alpha:g}, {alpha:g})", draw_weights(mixed, DRAWS, rng(1)), theirs, True)
        first = rng(2).beta(2 * alpha, alpha, DRAWS)
        theirs = np.column_stack([first, 1 - first])
        row(f"Beta({2 * alpha:g}, {alpha:g})", draw_weights(mixed, DRAWS, rng(1)), theirs, False)
    return out


PIXELS, RECORDS, MANY = 300, 20, 300
"""Pixels, records and encodings of an instance whose scheme is looked for."""


def found(part: slice = slice(None)) -> list[Row]:
    """50 instances: k from 1 to 6, equal and own weights, three kinds of signs, noise, scale; the
    scheme is not told."""
    right = there = wrong = 0
    out: list[Row] = []
    cells = [
        (k, own, signs, noise)
        for k in range(1, 7)
        for own in (False, True)
        for signs in ("absolute", "random", "kept")
        for noise in (0.0, 0.03)
        if not (own and k == 1)
    ]
    picked = np.sort(np.random.default_rng(FIRST).permutation(len(cells))[:50])
    for number in picked[part]:
        k, own, signs, noise = cells[number]
        law = "half-normal" if own else "convex"
        scheme = unveil.Scheme(k, weighting=law, signs=signs)  # type: ignore[arg-type]
        sim = unveil.simulate(
            scheme, RECORDS, m=MANY, d=PIXELS, noise=noise, rng=FIRST + int(number)
        )
        scale = float(np.random.default_rng(number).choice([0.1, 1.0, 30.0]))
        values = sim.encodings.values * np.float32(scale)
        told = unveil.Encodings(values, scheme, None)
        best = unveil.recover(told, rng=0)
        possible = bool(best.explained >= MANY / 2)
        start = time.perf_counter()
        got = unveil.recover(values, rng=0)
        seconds = time.perf_counter() - start
        said = got.evidence["scheme"]
        ok = said["k_private"] == k and bool(said["found"])
        bad = unveil.score(got, sim.private * scale, tolerance=0.01 * scale).wrong
        there, right, wrong = there + possible, right + (possible and ok), wrong + bad
        what = f"k={k}, {law}, {signs}, noise {noise:g}, × {scale:g}"
        answer = f"k={said['k_private']}, {said['weighting']}, {said['signs']}"
        answer = answer if said["found"] else "nothing found"
        out.append(
            (
                what,
                "k right" if possible else "nothing to recover",
                f"{answer}; {int(got.verified.sum())} verified, {bad} wrong, {seconds:.0f} s",
                not bad and (ok or not possible),
            )
        )
    told_of = f"{right} of {there}, {wrong} wrong"
    return [*out, ("all", "k right in 95 %", told_of, right >= 0.95 * there and not wrong)]


PARTS: dict[str, Callable[[], list[Row]]] = {
    "laws": laws,
    "mixup": mixup,
    "singularized": singularized,
    "found": found,
}


def main() -> None:
    for part in sys.argv[1:] or PARTS:
        show(part, PARTS[part]())


if __name__ == "__main__":
    main()
