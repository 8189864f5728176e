"""The certificate: against an exhaustive oracle, how much it lets pass, and what it costs.

`python -m benchmarks.certificate [designs per cell]`. Seeds are fixed: n vectors, m rows, k per
row.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import unveil
from benchmarks.readings import compare
from benchmarks.table import Row
from unveil.certify.design import in_doubt

SMALL = ((4, 2), (5, 2), (6, 2), (7, 2), (5, 3), (6, 3), (7, 3))
"""(n, k) of which all other readings are enumerated."""
PASSING = ((2, 10), (2, 20), (2, 40), (3, 10), (3, 20), (3, 40), (4, 12), (4, 20), (4, 40))
"""(k, n) of which the verified share is measured, m = 3n to 5n."""
LARGE = ((2, 1000), (2, 10_000))
SEED = 61000


def rows(count: int = 12) -> list[Row]:
    out = [_oracle(count, signed) for signed in (True, False)]
    out += [_verified(k, n, max(1, count // 4)) for k, n in PASSING]
    return [*out, _share(), *(_cost(k, n) for k, n in LARGE)]


def _oracle(count: int, signed: bool) -> Row:
    """Designs from m = n to m = 3n + 2, as far as there are different rows."""
    missed = unique = refused = designs = 0
    for n, k in SMALL:
        for seed in range(count):
            m = n + (2 * n + 2) * seed // max(1, count - 1)
            done = compare(n, m, k, signed, [SEED, n, k, seed])
            if done is None:
                continue
            designs, missed = designs + 1, missed + done[0]
            if m >= 3 * n:
                unique, refused = unique + done[1], refused + done[2]
    what = f"n ≤ 7, k ≤ 3, signs {'kept' if signed else 'hidden'}: {designs} designs"
    measured = f"{missed} missed; m ≥ 3n: {unique - refused} of {unique} unique vectors verified"
    return (
        what,
        "0 readings missed; 95 % of the unique",
        measured,
        not missed and refused <= 0.05 * unique,
    )


def _verified(k: int, n: int, seeds: int) -> Row:
    """Through the attack on encodings that keep their signs, Gaussian vectors of unknown size."""
    shares, certain, wrong = [], 0, 0
    for times in (3, 4, 5):
        exact = there = 0
        for seed in range(SEED, SEED + seeds):
            X = np.random.default_rng(seed).standard_normal((n, 150)).astype(np.float32)
            scheme = unveil.Scheme(k, signs="kept")
            sim = unveil.simulate(scheme, private=X, m=times * n, rng=seed)
            scores = unveil.score(unveil.recover(sim.encodings, rng=seed), X)
            uses = np.bincount(sim.selection.private.ravel(), minlength=n)
            exact, there = exact + scores.exact, there + int((uses >= 2).sum())
            wrong += scores.wrong
            if times == 3:
                doubts = in_doubt(sim.selection.private, n, signed=True, own_rows=True)
                certain += int((~doubts.doubt).sum())
        shares.append(exact / max(there, 1))
    measured = ", ".join(f"{share:.1%}" for share in shares)
    measured += f"; {wrong} wrong; design certain at 3n: {certain / n / seeds:.1%}"
    what = f"k={k}, n={n}, m = 3n, 4n, 5n: verified"
    return what, "95 % of vectors used twice, 0 wrong", measured, min(shares) >= 0.95 and not wrong


def _share() -> Row:
    sim = unveil.simulate(unveil.Scheme(2, signs="kept"), 1000, m=5000, d=1200, rng=SEED)
    start = time.perf_counter()
    recovery = unveil.recover(sim.encodings, rng=SEED)
    total = time.perf_counter() - start
    part = recovery.seconds["certificate"]
    measured = f"{part:.1f} of {total:.1f} s; {int(recovery.verified.sum())} verified"
    return (
        "share of an attack, k=2, n=1,000, m=5,000",
        "at most a sixth",
        measured,
        part < total / 6,
    )


def _cost(k: int, n: int) -> Row:
    rng = np.random.default_rng(SEED)
    members = np.array([rng.choice(n, k, replace=False) for _ in range(5 * n)])
    start = time.perf_counter()
    doubts = in_doubt(members, n, signed=False, own_rows=True)
    seconds = time.perf_counter() - start
    measured = f"{int((~doubts.doubt).sum()):,} of {n:,} certain, {seconds:.1f} s"
    what = f"the design alone, k={k}, n={n:,}, m=5n, signs hidden"
    return what, "most certain", measured, (~doubts.doubt).mean() > 0.9


if __name__ == "__main__":
    from benchmarks.table import show

    show("The certificate", rows(*map(int, sys.argv[1:2])))
