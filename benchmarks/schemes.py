"""The family of mixing schemes: what comes back from each, beside what must.

`python -m benchmarks.schemes [part …] [first seed]`, parts: laws, mixup, singularized, untold (is
the scheme found where none is told?), noise (is nothing claimed of noise?). All of them when none
is named. docs/schemes.md shows the tables.
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


def mixup(first: int) -> list[Row]:
    """Signs kept, own λ per row by Beta(α, α), Dirichlet(1, …, 1) beyond two."""
    out = [_mixup(2, alpha, 0.0, first) for alpha in (0.2, 1.0, 8.0)]
    out += [_mixup(k, 1.0, 0.0, first) for k in (3, 4, 6)]
    out += [_mixup(k, 1.0, NOISE, first) for k in (2, 3, 4)]
    return [*out, *(_mixup(2, 1.0, 0.0, first, m) for m in (500, 300, 250))]


def _mixup(k: int, alpha: float, noise: float, seed: int, m: int = M) -> Row:
    truth, W, encodings = mixtures(k, alpha, noise, m, seed)
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


def singularized(first: int) -> list[Row]:
    """Every record in two mixtures of a round, as y = (1 − λ)·x + λ·x', λ uniform up to α, noise of
    norm r; who is mixed with whom is not known. One round, then several."""
    cells = [(1, alpha, 0.0) for alpha in (0.05, 0.1, 0.25, 0.5)]
    cells += [(1, 0.25, r) for r in (1.6, 8.0)]
    cells += [(rounds, 0.5, 0.0) for rounds in (2, 3, 4, 6)]
    cells += [(6, 0.5, r) for r in (1.6, 8.0, 16.0)]
    return [_singularized(*cell, first) for cell in cells]


def _singularized(rounds: int, alpha: float, norm: float, seed: int) -> Row:
    rng = np.random.default_rng(seed)
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


def laws(_: int) -> list[Row]:
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


RECORDS, MANY, PIXELS = 20, 300, 300
"""Records, encodings and pixels of an instance whose scheme is looked for; twice as many encodings
behind masks."""
UNTOLD: dict[str, tuple[unveil.Scheme, float]] = {
    "2 equal, signs kept": (unveil.Scheme(2, weighting="convex", signs="kept"), 0.0),
    "3 equal, signs kept": (unveil.Scheme(3, weighting="convex", signs="kept"), 0.0),
    "2 own, signs kept": (unveil.Scheme(2, weighting="dirichlet", signs="kept"), 0.0),
    "3 own, signs kept": (unveil.Scheme(3, weighting="dirichlet", signs="kept"), 0.0),
    "2 own, signs kept, noise": (unveil.Scheme(2, weighting="dirichlet", signs="kept"), 0.03),
    "2 own, 4 masks": (unveil.Scheme(2, weighting="half-normal", signs="masked", masks=4), 0.0),
    "2 equal, absolute": (unveil.Scheme(2, weighting="convex"), 0.0),
    "3 equal, random signs": (unveil.Scheme(3, weighting="convex", signs="random"), 0.0),
    "2 equal, absolute, noise": (unveil.Scheme(2, weighting="convex"), 0.03),
    "2 own, absolute": (unveil.Scheme(2, weighting="half-normal"), 0.0),
}
"""Ten schemes, with the noise that is added."""


def untold(first: int, each: int = 5) -> list[Row]:
    """The scheme is not told: how often the right one comes first, of ten schemes, `each` times."""
    from unveil.identify import identify

    out: list[Row] = []
    for what, (scheme, noise) in UNTOLD.items():
        answers, spent = list[str](), time.process_time()
        m = 2 * MANY if scheme.masks else MANY
        for seed in range(first, first + each):
            sim = unveil.simulate(scheme, RECORDS, m=m, d=PIXELS, noise=noise, rng=seed)
            size = np.random.default_rng(seed).choice([0.1, 1.0, 30.0])
            claims = identify(sim.encodings.values * np.float32(size), rng=seed)
            answers.append(_answer(claims[0].scheme) if claims else "nothing")
        spent = (time.process_time() - spent) / each
        right = answers.count(_answer(scheme))
        wrong = sorted(set(answers) - {_answer(scheme)})
        measured = "; ".join([f"{right} of {each}", *wrong, f"{spent:.1f} s each"])
        out.append((what, "the right one first", measured, right >= 0.9 * each))
    return out


def _answer(scheme: unveil.Scheme) -> str:
    weights = "equal" if scheme.fixed_weights else "own"
    return f"{scheme.k_private} {weights}, {scheme.signs}" + f" {scheme.masks}" * bool(scheme.masks)


SHAPES = ((60, 40), (150, 30), (120, 12), (80, 100), (300, 60))
"""Encodings and values of an array of noise."""
NOISES: dict[str, Callable[[np.random.Generator, int, int], np.ndarray]] = {
    "normal": lambda rng, m, d: rng.standard_normal((m, d)),
    "absolute": lambda rng, m, d: np.abs(rng.standard_normal((m, d))),
    "uniform": lambda rng, m, d: rng.random((m, d)),
    "Student's t, 2 degrees": lambda rng, m, d: rng.standard_t(2, (m, d)),
    "log-normal": lambda rng, m, d: np.exp(rng.standard_normal((m, d))),
    "whole numbers": lambda rng, m, d: rng.integers(0, 6, (m, d)).astype(float),
    "exponential, correlated": lambda rng, m, d: (
        rng.standard_exponential((m, 5)) @ rng.standard_normal((5, d))
        + 0.1 * rng.standard_normal((m, d))
    ),
    "normal, correlated": lambda rng, m, d: (
        rng.standard_normal((m, 4)) @ rng.standard_normal((4, d))
        + 0.3 * rng.standard_normal((m, d))
    ),
    "low rank": lambda rng, m, d: rng.standard_normal((m, 6)) @ rng.standard_normal((6, d)),
    "random walks": lambda rng, m, d: np.cumsum(rng.standard_normal((m, d)), axis=1),
}
"""Arrays of m rows and d columns that mix nothing."""


def noise(first: int, each: int = 2) -> list[Row]:
    """Noise of ten kinds in five shapes, `each` times: no scheme must be claimed."""
    from unveil.identify import identify

    out: list[Row] = []
    for number, (what, draw) in enumerate(NOISES.items()):
        spent, claims = time.process_time(), list[str]()
        for m, d in SHAPES:
            for seed in range(first, first + each):
                values = draw(np.random.default_rng([seed, number]), m, d).astype(np.float32)
                claims += [f"{m}×{d}: {one.evidence}" for one in identify(values, rng=seed)[:1]]
        count = each * len(SHAPES)
        spent = (time.process_time() - spent) / count
        measured = "; ".join([f"{len(claims)} of {count}, {spent:.1f} s each", *claims])
        out.append((what, "no claim", measured, not claims))
    return out


PARTS: dict[str, Callable[[int], list[Row]]] = {
    "laws": laws,
    "mixup": mixup,
    "singularized": singularized,
    "untold": untold,
    "noise": noise,
}


def main() -> None:
    first = next((int(word) for word in sys.argv[1:] if word.isdigit()), FIRST)
    for part in [word for word in sys.argv[1:] if not word.isdigit()] or PARTS:
        show(part, PARTS[part](first))


if __name__ == "__main__":
    main()
