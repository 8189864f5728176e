"""LearnPublic: exact supports at the paper's settings and below them, speed, memory, unknowns,
calibration; and the curve.

    python -m benchmarks.learn_public [--quick] [--curve]

`--quick` takes few encodings and the smaller settings. `--curve` also writes
docs/figures/learn_public_curve.{svg,png,json}: the rate of exact supports against d for this
package and for every method in `benchmarks/baselines`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from benchmarks.baselines import sparta, thresholded_wirtinger, truncated_power
from benchmarks.table import Row, show
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

import unveil

K_PRIVATE = 2
PAPER_D = {2: 1000, 4: 1800, 6: 2400}
FEW_D = {2: 500, 4: 900, 6: 1500}
FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "learn_public_curve"


def instance(k: int, d: int, n_public: int, weighting: str, m: int, seed: int) -> unveil.Simulation:
    return unveil.simulate(
        unveil.Scheme(K_PRIVATE, k, weighting), 100, n_public=n_public, m=m, d=d, rng=seed
    )


def right(found: NDArray[np.int64], truth: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows are exactly the true support; empty slots hold −1."""
    return np.array(
        [
            {i for i in a if i >= 0} == set(b)
            for a, b in zip(found.tolist(), truth.tolist(), strict=True)
        ]
    )


def compare(sim: unveil.Simulation) -> tuple[int, int, float]:
    """Exact supports of folded-em and of diagonal thresholding, and the milliseconds the first
    takes for one encoding."""
    start = time.perf_counter()
    ours = unveil.learn_public(sim.encodings, sim.public, method="folded-em").indices
    each = (time.perf_counter() - start) / sim.encodings.m * 1e3
    diagonal = unveil.learn_public(sim.encodings, sim.public, method="diagonal").indices
    return (
        int(right(ours, sim.selection.public).sum()),
        int(right(diagonal, sim.selection.public).sum()),
        each,
    )


def paper_settings(quick: bool) -> list[Row]:
    m = 40 if quick else 200
    out = []
    for n_public in (2000,) if quick else (2000, 5000, 7500, 10_000):
        for k, d in PAPER_D.items():
            for weighting in ("equal", "paper"):
                ours, diagonal, each = compare(
                    instance(k, d, n_public, weighting, m, 100 + n_public + k)
                )
                out.append(
                    (
                        f"n_public={n_public}, k_public={k}, d={d}, {weighting}",
                        "99.9% of supports exact",
                        f"{ours} of {m}, {each:.1f} ms each; diagonal {diagonal} of {m}",
                        ours >= 0.999 * m,
                    )
                )
    return out


def fewer_pixels(quick: bool) -> list[Row]:
    m, n_public = (40, 2000) if quick else (200, 10_000)
    out = []
    for k, d in FEW_D.items():
        ours, diagonal, each = compare(instance(k, d, n_public, "paper", m, 200 + k))
        measured = f"{ours} of {m}, {each:.1f} ms each; diagonal {diagonal} of {m}"
        out.append(
            (
                f"fewer pixels: n_public={n_public}, k_public={k}, d={d}, paper",
                "95% exact",
                measured,
                ours >= 0.95 * m,
            )
        )
    return out


def speed() -> list[Row]:
    """Against the one product Y²(P²)ᵀ that any screen of all public vectors needs, on the same
    cores; the best of three."""
    m, n_public, cores = 1000, 10_000, len(os.sched_getaffinity(0))
    sim = instance(6, 2400, n_public, "equal", m, 300)
    products, ours = [], []
    y, p = np.square(sim.encodings.values), np.square(sim.public)
    for _ in range(3):
        with threadpool_limits(cores, user_api="blas"):
            start = time.perf_counter()
            _ = y @ p.T
            products.append(time.perf_counter() - start)
        start = time.perf_counter()
        _ = unveil.learn_public(sim.encodings, sim.public, workers=cores)
        ours.append(time.perf_counter() - start)
    each, ratio = min(ours) / m * 1e3, min(ours) / min(products)
    what = f"speed: n_public={n_public}, k_public=6, d=2400, m={m}, {cores} cores"
    return [
        (what, "at most 15 ms each", f"{each:.2f} ms", each <= 15),
        (
            what,
            "at most 15 times one screening product",
            f"{ratio:.1f} times ({min(products):.2f} s)",
            ratio <= 15,
        ),
    ]


def memory(quick: bool) -> list[Row]:
    """The public vectors stay on disk; the address space of the process that solves it, file
    included, is limited."""
    n_public, d, m = (20_000 if quick else 200_000), 1000, 100
    limit = (1 if quick else 2) << 30
    what = f"memory: n_public={n_public}, d={d} memory-mapped ({4 * n_public * d / 1e6:.0f} MB), k_public=2, m={m}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        rng = np.random.default_rng(400)
        truth = np.sort(
            np.array([rng.choice(n_public, 2, replace=False) for _ in range(m)]), axis=1
        )
        public = np.lib.format.open_memmap(path / "public.npy", "w+", np.float32, (n_public, d))
        for start in range(0, n_public, 5000):
            public[start : start + 5000] = rng.standard_normal(
                (min(5000, n_public - start), d), dtype=np.float32
            )
        mixed = (
            public[truth].sum(axis=1) + rng.standard_normal((m, 2, d), dtype=np.float32).sum(axis=1)
        ) / 2
        np.save(path / "encodings.npy", np.abs(mixed))
        np.save(path / "truth.npy", truth)
        public.flush()
        code = f"from benchmarks.learn_public import solve_within; solve_within({str(path)!r}, {limit})"
        child = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
    if child.returncode:
        return [
            (what, f"under {limit >> 30} GiB", child.stderr.strip().splitlines()[-1][:60], False)
        ]
    exact, peak, anonymous = json.loads(child.stdout)
    measured = f"{exact} of {m} exact; peak {peak / 2**30:.2f} GiB with the file, {anonymous / 2**20:.0f} MiB without"
    return [(what, f"under {limit >> 30} GiB, 99.9% exact", measured, exact >= 0.999 * m)]


def solve_within(folder: str, limit: int) -> None:
    """Run by `memory` in a process of its own: prints exact supports, peak address space, anonymous
    memory at its peak."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    path = Path(folder)
    public = np.load(path / "public.npy", mmap_mode="r")
    encodings = unveil.Encodings(np.load(path / "encodings.npy"), unveil.Scheme(K_PRIVATE, 2))
    anonymous = 0

    def watch(stage: str, done: int, total: int) -> None:
        nonlocal anonymous
        anonymous = max(anonymous, _status("RssAnon"))

    found = unveil.learn_public(
        encodings, public, method="folded-em", memory_limit=limit // 4, progress=watch
    )
    watch("end", 1, 1)
    print(
        json.dumps(
            [
                int(right(found.indices, np.load(path / "truth.npy")).sum()),
                _status("VmPeak"),
                anonymous,
            ]
        )
    )


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def unknown_k(quick: bool) -> list[Row]:
    m, n_public = (40, 2000) if quick else (200, 10_000)
    out = []
    for k, d in PAPER_D.items():
        sim = instance(k, d, n_public, "paper", m, 500 + k)
        found = unveil.learn_public(sim.encodings, sim.public, k_public=None)
        exact = int(right(found.indices, sim.selection.public).sum())
        what = f"unknown k: n_public={n_public}, k_public={k}, d={d}, paper"
        out.append((f"{what}, not given", "95% exact", f"{exact} of {m}", exact >= 0.95 * m))
        for wrong in (k - 1, k + 1):
            given = unveil.Encodings(sim.encodings.values, unveil.Scheme(K_PRIVATE, wrong, "paper"))
            found = unveil.learn_public(given, sim.public)
            sure = int(found.certain.sum())
            measured = f"{'said so' if found.warning else 'NOT said'}; {sure} of {m} called certain"
            out.append(
                (
                    f"{what}, given as {wrong}",
                    "said so, none called certain",
                    measured,
                    bool(found.warning) and sure == 0,
                )
            )
    return out


def half_normal(quick: bool) -> list[Row]:
    """Weights |N(0,1)| over all slots, normalised to sum 1; neither weights nor k_public are given.

    A member is resolvable when dropping it from the true support costs more than log n_public + 1.5
    nats: less is what the best of n_public foreign vectors gains by chance. The oracle is told the
    true support and fits the weights alone.
    """
    m, n_public = (40, 2000) if quick else (200, 10_000)
    out: list[Row] = []
    for k, d in PAPER_D.items():
        rng = np.random.default_rng(600 + k)
        public = rng.standard_normal((n_public, d), dtype=np.float32)
        truth = np.sort(
            np.array([rng.choice(n_public, k, replace=False) for _ in range(m)]), axis=1
        )
        weights = np.abs(rng.standard_normal((m, k + K_PRIVATE)))
        weights /= weights.sum(axis=1, keepdims=True)
        private = rng.standard_normal((m, K_PRIVATE, d))
        y = np.abs(
            np.einsum("ik,ikd->id", weights[:, :k], public[truth])
            + np.einsum("ik,ikd->id", weights[:, k:], private)
        )
        found = unveil.learn_public(
            unveil.Encodings(y.astype(np.float32), unveil.Scheme(K_PRIVATE, k, "convex")),
            public,
            k_public=None,
            weights="unknown",
        )
        price = np.log(n_public) + 1.5
        exact = resolvable = on_resolvable = near = oracle_near = 0
        for i in range(m):
            w = weights[i, :k]
            X = public[truth[i]].astype(np.float64)
            variance = float((weights[i, k:] ** 2).sum())
            fitted, top = fit(y[i], X, w, variance)
            losses = [
                top - fit(y[i], np.delete(X, j, axis=0), np.delete(w, j), variance + w[j] ** 2)[1]
                for j in range(k)
            ]
            members = {int(j) for j, loss in zip(truth[i], losses, strict=True) if loss > price}
            mine = dict(zip(found.indices[i].tolist(), found.weights[i].tolist(), strict=True))
            mine.pop(-1, None)
            exact += set(mine) == set(truth[i].tolist())
            resolvable += len(members) == k
            on_resolvable += set(mine) == members
            error = np.array([mine.get(int(j), 0.0) for j in truth[i]]) - w
            near += np.linalg.norm(error) <= 0.05 * np.linalg.norm(w)
            oracle_near += np.linalg.norm(fitted - w) <= 0.05 * np.linalg.norm(w)
        what = f"half-normal weights: n_public={n_public}, k_public={k}, d={d}"
        out += [
            (
                what,
                "95% exact",
                f"{exact} of {m}; all members are resolvable in {resolvable}",
                exact >= 0.95 * m,
            ),
            (f"{what}, resolvable members", "–", f"exactly those in {on_resolvable} of {m}", None),
            (
                f"{what}, weights",
                "95% within 5% of their norm",
                f"{near} of {m}; given the true support {oracle_near}",
                near >= 0.95 * m,
            ),
        ]
    return out


def fit(
    y: NDArray[np.float64], X: NDArray[np.float64], weights: NDArray[np.float64], variance: float
) -> tuple[NDArray[np.float64], float]:
    """Maximum likelihood weights (nonnegative) of y = |wᵀX + noise| on a known support, and the log
    likelihood."""
    d = len(y)

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w, v = theta[:-1], np.exp(theta[-1])
        mu = w @ X
        x = y * mu / v
        size = np.abs(x)
        value = (
            0.5 * (y @ y + mu @ mu) / v - (size + np.log1p(np.exp(-2 * size))).sum()
        ) + 0.5 * d * theta[-1]
        sign = np.tanh(x)
        slope = 0.5 * d - 0.5 * (y @ y + mu @ mu - 2 * (y * sign) @ mu) / v
        return value, np.append(-X @ (y * sign - mu) / v, slope)

    bounds = [(0, None)] * len(weights) + [(None, None)]
    best = minimize(
        loss, np.append(weights, np.log(variance)), jac=True, method="L-BFGS-B", bounds=bounds
    )
    return best.x[:-1], -float(best.fun)


def no_private_part(quick: bool) -> list[Row]:
    m, n_public = (20, 2000) if quick else (100, 10_000)
    out = []
    for k, d in ((2, 300), (4, 600), (6, 1000)):
        sim = unveil.simulate(unveil.Scheme(0, k), 1, n_public=n_public, m=m, d=d, rng=700 + k)
        found = unveil.learn_public(sim.encodings, sim.public)
        exact = right(found.indices, sim.selection.public)
        values = (
            np.ones(m, bool)
            if found.weights is None
            else np.abs(found.weights[:, :k] - k**-0.5).max(axis=1) < 1e-4
        )
        measured = f"{int((exact & values).sum())} of {m} (support alone {int(exact.sum())})"
        wrong = int((found.certain & ~(exact & values)).sum())
        what = f"no private part: n_public={n_public}, k_public={k}, d={d}"
        out.append(
            (
                what,
                "support and values exact, none wrong and certain",
                f"{measured}, {wrong} wrong and certain",
                wrong == 0,
            )
        )
    return out


def calibration(quick: bool) -> list[Row]:
    """Cells where many supports are wrong, and cells with enough certain ones to count to 1 in
    10,000: what is called certain must be right in both."""
    n_public = 2000
    hard = [(k, d, 1000) for k, d in ((2, 150), (2, 250), (4, 350), (4, 500), (6, 600), (6, 800))]
    many = [(k, d, 8000) for k, d in ((2, 300), (2, 400), (4, 600), (4, 700), (6, 1100))]
    total = certain = wrong = slips = 0
    for k, d, m in [(k, d, m // 20) for k, d, m in hard] if quick else hard + many:
        sim = instance(k, d, n_public, "paper", m, 800 + k + d)
        found = unveil.learn_public(sim.encodings, sim.public)
        exact = right(found.indices, sim.selection.public)
        total += m
        wrong += int((~exact).sum())
        certain += int(found.certain.sum())
        slips += int((found.certain & ~exact).sum())
    # No slip among few certain ones shows nothing yet: then neither yes nor NO.
    shown = True if slips == 0 and certain >= 30_000 else None
    bound = f"below {3 / certain:.1e} with 95%" if certain and not slips else "–"
    return [
        (
            f"calibration: n_public={n_public}, d from 150 to 1100, {total} encodings, {wrong} supports wrong",
            "at most 1 in 10,000 certain ones wrong",
            f"{slips} of {certain} ({bound})",
            False if slips > certain / 10_000 else shown,
        )
    ]


def bad_input() -> list[Row]:
    sim = instance(2, 400, 50, "paper", 4, 900)
    y, scheme, public = sim.encodings.values, sim.encodings.scheme, sim.public

    def complaint(call: Callable[[], object]) -> str | None:
        try:
            call()
        except unveil.InputError as error:
            return str(error)
        return None

    broken = y.copy()
    broken[1, 2] = np.nan
    doubled = np.concatenate([public, public[:1], np.zeros((1, 400), np.float32)])
    found = unveil.learn_public(sim.encodings, doubled)
    empty = unveil.learn_public(unveil.Encodings(y, unveil.Scheme(2)), public).indices.shape
    shapes = complaint(lambda: unveil.learn_public(sim.encodings, public[:, :-1]))
    nans = complaint(lambda: unveil.Encodings(broken, scheme))
    return [
        ("k_public=0", "empty supports", f"shape {empty}", empty == (4, 0)),
        ("public vectors with another d", "one sentence", shapes or "accepted", shapes is not None),
        ("NaN in an encoding", "one sentence", nans or "accepted", nans is not None),
        (
            "a public vector twice, and one of zeros",
            "reported as interchangeable; zeros never chosen",
            f"groups {found.interchangeable}",
            found.interchangeable == ((0, 50),) and not (found.indices == 51).any(),
        ),
    ]


PARTS: dict[str, Callable[[bool], list[Row]]] = {
    "The paper's twelve settings, two weightings": paper_settings,
    "Fewer pixels": fewer_pixels,
    "Speed": lambda quick: speed(),
    "Memory": memory,
    "k_public unknown": unknown_k,
    "Weights unknown": half_normal,
    "No private part": no_private_part,
    "Calibration": calibration,
    "Bad input": lambda quick: bad_input(),
}


def rows(quick: bool = False) -> list[Row]:
    compare(instance(2, 500, 200, "paper", 4, 0))  # compile
    return [row for part in PARTS.values() for row in part(quick)]


Method = Callable[[unveil.Simulation], NDArray[np.int64]]


def _ours(method: str) -> Method:
    return lambda sim: unveil.learn_public(sim.encodings, sim.public, method=method).indices


def _baseline(support: Callable[..., NDArray[np.int64]], told: bool) -> Method:
    def run(sim: unveil.Simulation) -> NDArray[np.int64]:
        scheme = sim.encodings.scheme
        more = {"private_variance": scheme.private_variance} if told else {}
        return support(sim.encodings.magnitudes(), sim.public, scheme.k_public, **more)

    return run


METHODS: dict[str, Method] = {
    "folded-em": _ours("folded-em"),
    "truncated power": _baseline(truncated_power.support, told=False),
    "thresholded Wirtinger flow": _baseline(thresholded_wirtinger.support, told=True),
    "SPARTA": _baseline(sparta.support, told=True),
    "diagonal thresholding": _ours("diagonal"),
    "SDP": _ours("sdp"),
}
"""Every method of the curve; the SDP costs n_public³ per step and is in the small panel only."""

PANELS = (
    (2000, 100, (200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200, 1400, 1800, 2400)),
    (100, 40, (100, 200, 300, 400, 500, 600, 800, 1000, 1400)),
)


def curve(quick: bool = False) -> list[Row]:
    """Writes the figure and its numbers; returns where each method first solves 95%."""
    k, panels = 4, []
    for n_public, m, pixels in PANELS:
        m, pixels = (20, pixels[::3]) if quick else (m, pixels)
        names = [name for name in METHODS if name != "SDP" or n_public <= 300]
        counts: dict[str, list[int]] = {name: [] for name in names}
        for d in pixels:
            sim = instance(k, d, n_public, "paper", m, 1000 + d)
            for name in names:
                counts[name].append(int(right(METHODS[name](sim), sim.selection.public).sum()))
        panels.append(
            {
                "n_public": n_public,
                "k_public": k,
                "encodings": m,
                "d": list(pixels),
                "exact": counts,
            }
        )
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    FIGURE.with_suffix(".json").write_text(json.dumps(panels, indent=1) + "\n")
    draw(panels)
    out: list[Row] = []
    for panel in panels:
        for name, exact in panel["exact"].items():
            rates = ", ".join(
                f"{d}: {c / panel['encodings']:.2f}" for d, c in zip(panel["d"], exact, strict=True)
            )
            out.append(
                (f"n_public={panel['n_public']}, k_public={k}, paper: {name}", "–", rates, None)
            )
    return out


def draw(panels: list[dict]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    # Okabe and Ito's colours, which colour-blind readers tell apart; markers say the same once
    # more.
    styles = {
        "folded-em": ("#000000", "o"),
        "truncated power": ("#0072B2", "s"),
        "thresholded Wirtinger flow": ("#009E73", "^"),
        "SPARTA": ("#D55E00", "D"),
        "diagonal thresholding": ("#CC79A7", "v"),
        "SDP": ("#E69F00", "P"),
    }
    plt.rcParams["svg.hashsalt"] = "unveil"
    figure, axes = plt.subplots(
        1, len(panels), figsize=(11, 4.4), sharey=True, layout="constrained"
    )
    for axis, panel in zip(axes, panels, strict=True):
        # The first lies on top where curves meet.
        for order, (name, exact) in zip(range(20, 0, -1), panel["exact"].items(), strict=False):
            colour, marker = styles[name]
            rate, low, high = wilson(np.array(exact), panel["encodings"])
            axis.fill_between(panel["d"], low, high, color=colour, alpha=0.12, linewidth=0)
            axis.plot(
                panel["d"],
                rate,
                color=colour,
                marker=marker,
                markersize=5,
                linewidth=1.6,
                label=name,
                zorder=order,
            )
        axis.set_title(
            f"n_public = {panel['n_public']}, k_public = {panel['k_public']}, k_private = {K_PRIVATE}, weighting paper,"
            f" {panel['encodings']} encodings each",
            fontsize=9,
        )
        axis.set_xlabel("pixels d")
        axis.grid(alpha=0.25)
        axis.set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("share of supports exactly right")
    axes[-1].legend(loc="lower right", fontsize=8, title="95% bands (Wilson)", title_fontsize=8)
    figure.savefig(FIGURE.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(FIGURE.with_suffix(".png"), dpi=130)
    plt.close(figure)


def wilson(
    count: NDArray[np.int64], m: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Rate and 95% interval of a binomial proportion."""
    z, rate = 1.96, count / m
    centre = (rate + z * z / (2 * m)) / (1 + z * z / m)
    half = z * np.sqrt(rate * (1 - rate) / m + z * z / (4 * m * m)) / (1 + z * z / m)
    return rate, centre - half, centre + half


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.learn_public", description="LearnPublic against its peers"
    )
    parser.add_argument("--quick", action="store_true", help="few encodings, smaller settings")
    parser.add_argument(
        "--curve", action="store_true", help="also draw the curve of every method down to failure"
    )
    asked = parser.parse_args()
    compare(instance(2, 500, 200, "paper", 4, 0))  # compile
    failed = 0
    for title, part in PARTS.items():
        table = part(asked.quick)
        show(title, table)
        failed += sum(row[3] is False for row in table)
    if asked.curve:
        show("Exact supports against d", curve(asked.quick))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
