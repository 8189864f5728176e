"""What works, one row per case that a user has: a change may not make any of it worse in silence.

    python -m benchmarks.golden [--only TEXT …]               run and print
    python -m benchmarks.golden --write [FILE] [--only TEXT …]  run and store in golden.json, the bar,
                                                              or in FILE: measured.json is what
                                                              docs/measured.md shows
    python -m benchmarks.golden --compare [--only TEXT …]     run, and exit with 1 where a row fell

A row runs in a process of its own, on one thread, three fixed seeds unless it is large. It records,
per seed: how many private records came back (`right`, of how many), how many of them are verified,
how many verified ones are wrong, the share of values returned that are declared open, the mean SSIM
of images, CPU seconds; and for all seeds the peak memory. A record is right when every value that
is not open is within a hundredth of the spread of the data; under noise, when its root mean square
error is below the noise. Without a public part one sign per column is free.

A row fell if a seed has fewer right or verified than the lowest of the stored ones, anything wrong,
a mean SSIM lower by more than .01, or if CPU seconds or memory are more than 1.5 times the stored.
The scoring here shares no code with the library. Images come from the folder UNVEIL_DATA
(../shared/data without it); without them their rows are left out, and said.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import unveil

Array = np.ndarray[Any, Any]
Run = Callable[[int], dict[str, Any]]
ROOT = Path(__file__).resolve().parents[1]
STORE = ROOT / "benchmarks" / "golden.json"
DATA = Path(os.environ.get("UNVEIL_DATA", ROOT.parent / "shared" / "data"))


@dataclass(frozen=True)
class Row:
    name: str
    run: Run
    seeds: int = 3
    limit: int = 150  # CPU seconds, after which nothing counts as right


# --------------------------------------------------------------------------------------- scoring


def timed(call: Callable[[], Any]) -> tuple[Any, float, int]:
    """What a call returns, its CPU seconds, and the peak memory of the process so far."""
    start = time.process_time()
    result = call()
    cpu = time.process_time() - start
    return result, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def held_against(
    vectors: Array, truth: Array, known: Array, signed: bool
) -> tuple[Array, Array, Array]:
    """For each vector: the record it is nearest to, the largest and the rms error, over the values
    in `known`. Where signs are free, one per column is chosen for all vectors together."""
    x, t = vectors.astype(np.float64), truth.astype(np.float64)

    def nearest(a: Array, b: Array) -> Array:
        middle = b.mean(axis=0)
        a, b = np.where(known, a - middle, 0), b - middle
        return np.asarray((known @ (b * b).T - 2 * a @ b.T).argmin(axis=1))

    if not signed:
        match = nearest(np.abs(x), np.abs(t))
        # A vector that is far off must not choose the sign of a column.
        near = np.abs(np.abs(x) - np.abs(t[match])).max(axis=1, where=known, initial=0)
        trusted = near <= np.median(near)
        votes = (x * t[match] * known)[trusted].sum(axis=0)
        x = np.where(votes < 0, -x, x)
    match = nearest(x, t)
    gap = np.abs(x - t[match])
    rms = np.sqrt((gap**2 * known).sum(axis=1) / np.maximum(known.sum(axis=1), 1))
    return match, gap.max(axis=1, where=known, initial=0), rms


def recovered(
    encodings: unveil.Encodings,
    truth: Array,
    public: Array | None = None,
    noise: float = 0.0,
    rng: int = 0,
    attack: Callable[..., unveil.Recovery] = unveil.recover,
) -> dict[str, Any]:
    """Run the attack, score what it returns."""
    recovery, cpu, memory = timed(lambda: attack(encodings, public, rng=rng))
    result = {"of": len(truth), "cpu": cpu, "memory": memory}
    if not len(recovery.vectors):
        return {**result, "right": 0, "verified": 0, "wrong": 0, "open": 0.0}
    mask = recovery.doubtful
    known = np.ones(recovery.vectors.shape, bool) if mask is None else ~mask
    match, largest, rms = held_against(recovery.vectors, truth, known, recovery.signed)
    spread = float(np.sqrt(np.mean((truth - truth.mean(axis=0)) ** 2)))
    right = rms <= noise if noise else largest <= 0.01 * spread
    right &= known.any(axis=1)
    verified = recovery.status == "verified"
    return {
        **result,
        "right": len(set(match[right].tolist())),
        "verified": len(set(match[right & verified].tolist())),
        "wrong": int((verified & ~right).sum()),
        "open": float(1 - known.mean()),
    }


# ------------------------------------------------------------------------------------- instances


def gaussian(
    seed: int,
    k: int = 2,
    n: int = 100,
    m: int = 700,
    d: int = 1000,
    k_public: int = 0,
    n_public: int = 0,
    noise: float = 0.0,
    attack: Callable[..., unveil.Recovery] = unveil.recover,
    **scheme: Any,
) -> dict[str, Any]:
    sim = unveil.simulate(
        unveil.Scheme(k, k_public, **scheme), n, n_public=n_public, m=m, d=d, noise=noise, rng=seed
    )
    return recovered(sim.encodings, sim.private, sim.public, noise, seed, attack)


def few(seed: int, **options: Any) -> dict[str, Any]:
    """Algorithm 4 recovers the k + 2 records of one floral: so many are all it can have right."""
    result = gaussian(seed, attack=unveil.learn_private_image, **options)
    return {**result, "of": options["k"] + 2}


def supports(seed: int, k_public: int, n_public: int, d: int, weighting: str) -> dict[str, Any]:
    sim = unveil.simulate(
        unveil.Scheme(2, k_public, weighting), 100, n_public=n_public, m=60, d=d, rng=seed
    )
    found, cpu, memory = timed(lambda: unveil.learn_public(sim.encodings, sim.public))
    truth = np.sort(sim.selection.public, axis=1)
    right = (np.sort(found.indices, axis=1) == truth).all(axis=1)
    return {"of": 60, "right": int(right.sum()), "cpu": cpu, "memory": memory}


def learned(seed: int) -> dict[str, Any]:
    """Three of the paper's settings, one per seed."""
    k_public, n_public, d, weighting = (
        (2, 2000, 1000, "equal"),
        (4, 5000, 1800, "paper"),
        (6, 10_000, 2400, "equal"),
    )[seed]
    return supports(seed, k_public, n_public, d, weighting)


def overlaps(seed: int, k: int, n: int, m: int, d: int) -> dict[str, Any]:
    sim = unveil.simulate(unveil.Scheme(k), n, m=m, d=d, rng=seed)
    found, cpu, memory = timed(lambda: unveil.gram_extract(sim.encodings).toarray())
    member = np.zeros((m, n), np.int64)
    np.put_along_axis(member, sim.selection.private, 1, axis=1)
    truth = member @ member.T
    off = ~np.eye(m, dtype=bool)
    right = int(((found == truth) & (truth > 0) & off).sum())
    wrong = int(((found != truth) & (found > 0) & off).sum())
    of = int(((truth > 0) & off).sum())
    return {"of": of, "right": right, "wrong": wrong, "cpu": cpu, "memory": memory}


def florals(seed: int, k: int, n: int, m: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    member = np.zeros((m, n), np.int64)
    for row in member:
        row[rng.choice(n, k, replace=False)] = 1
    given = unveil.Overlaps.from_array(member @ member.T, k)
    floral, cpu, memory = timed(lambda: unveil.find_floral_submatrix(given))
    return {"of": 1, "right": int(floral is not None), "cpu": cpu, "memory": memory}


def table(name: str, rng: np.random.Generator, n: int | None) -> Array:
    """n records of a table, standardised; None: all of them."""
    if name == "whole numbers":  # age, visits, children, rooms, days, grade, floor, score
        high = (80, 40, 6, 9, 365, 15, 12, 100)
        x = np.stack([rng.binomial(top, rng.beta(2, 3, n)) for top in high], axis=1).astype(float)
    elif name == "binary":  # four measured columns and five of yes or no
        risk = rng.standard_normal((n or 175, 1))
        measured = np.exp(0.3 * (risk + rng.standard_normal((len(risk), 4)))) * (60, 136, 250, 1.2)
        answers = rng.random((len(risk), 5)) < 1 / (1 + np.exp(-risk + (0.2, -0.4, 0.6, 1, -0.6)))
        x = np.hstack([measured, answers])
    else:
        from sklearn import datasets

        x = getattr(datasets, f"load_{name}")().data.astype(float)
    if n is not None and len(x) > n:
        x = x[rng.permutation(len(x))[:n]]
    x = x[:, x.std(axis=0) > 0]
    return np.asarray((x - x.mean(axis=0)) / x.std(axis=0), np.float32)


def images(name: str, rng: np.random.Generator, n: int) -> Array:
    """Pixels from −1 to 1."""
    file = {"cifar": "cifar10_test2k_small.npz", "fashion": "fashion_mnist_test10k.npz"}[name]
    x = np.load(DATA / file, allow_pickle=False)["x"]
    x = x[rng.permutation(len(x))[:n]].reshape(n, -1)
    return x.astype(np.float32) / np.float32(127.5) - np.float32(1)


def mixed(
    seed: int,
    name: str,
    n: int | None = 100,
    k: int = 2,
    each: int = 7,
    noise: float = 0.0,
    values: str = "",
    **scheme: Any,
) -> dict[str, Any]:
    """Real records, m = each·n encodings. values: how they are stored ("float16", "8 bits"), or
    "not negative" where the data have no sign to hide."""
    rng = np.random.default_rng(seed)
    is_image = name in ("cifar", "fashion")
    x = images(name, rng, n or 100) if is_image else table(name, rng, n)
    if values == "not negative":
        x = (x + 1) / 2
    sim = unveil.simulate(
        unveil.Scheme(k, **scheme), private=x, m=each * len(x), noise=noise, rng=seed
    )
    y = sim.encodings.values
    if values == "float16":
        y = y.astype(np.float16).astype(np.float32)
    if values == "8 bits":
        step = np.float32(np.abs(y).max() / 255)
        y = np.rint(y / step) * step
    encodings = unveil.Encodings(y, sim.encodings.scheme, pixel_rms=None)
    return recovered(encodings, x, None, noise, seed)


def natural(
    seed: int,
    private: str = "cifar",
    n: int = 16,
    each: int = 40,
    grey: bool = False,
    labels: bool = False,
    flips: bool = False,
    crops: int = 0,
    k_public: int = 4,
) -> dict[str, Any]:
    """Photographs among photographs, as InstaHide was released."""
    rng = np.random.default_rng(seed)
    caltech = np.load(DATA / "caltech101_32.npz", allow_pickle=False)
    faces = caltech["y"] == 0  # the class of portraits
    if private == "faces":
        own, classes = caltech["x"][faces], caltech["y"][faces]
    else:
        cifar = np.load(DATA / "cifar10_test2k_small.npz", allow_pickle=False)
        own, classes = cifar["x"], cifar["y"]
    chosen = rng.permutation(len(own))[:n]
    own, others = own[chosen], caltech["x"][~faces][rng.permutation(int((~faces).sum()))]
    if grey:
        own, others = (x @ np.array([0.299, 0.587, 0.114]) for x in (own, others))
    shape = own.shape[1:]
    x, p = (a.reshape(len(a), -1).astype(np.float32) / 127.5 - 1 for a in (own, others))
    sim = unveil.simulate(
        unveil.Scheme(2, k_public, "released", pairing="epochs", signs="random"),
        private=x,
        public=p[:5000] if k_public else None,
        m=each * n,
        image_shape=shape,
        labels=classes[chosen].astype(np.int64) if labels else None,
        flips=("epoch" if crops else True) if flips else False,
        crops=crops,
        crops_per="epoch" if crops else "use",
        rng=seed,
    )
    # Where images have an attack of their own by name, it is that one.
    call = getattr(unveil, "recover_images", None) or partial(unveil.recover, attack="natural")
    found, cpu, memory = timed(
        lambda: call(sim.encodings, like=p[5000:], n_private=n, flips=flips, crops=crops, rng=seed)
    )
    ssim = likeness(found.vectors, x, shape)
    if flips:  # which way round an image was is not in the encodings
        mirrored = x.reshape(n, *shape)[:, :, ::-1].reshape(n, -1)
        ssim = np.maximum(ssim, likeness(found.vectors, mirrored, shape))
    verified = int((found.status == "verified").sum())
    return {
        "of": n, "right": int((ssim > 0.5).sum()), "verified": verified, "wrong": verified,
        "ssim": float(ssim.mean()), "cpu": cpu, "memory": memory,
    }  # fmt: skip


def likeness(found: Array, truth: Array, shape: tuple[int, ...]) -> Array:
    """The best SSIM that any image found has with each true one, on [0, 1]."""
    from skimage.metrics import structural_similarity

    if not len(found):
        return np.zeros(len(truth))
    a, b = ((np.clip(x, -1, 1) + 1) / 2 for x in (found, truth))
    close = np.corrcoef(a, b)[len(a) :, : len(a)]
    out = []
    for i, candidates in enumerate(np.argsort(-close, axis=1)[:, :3]):
        one = b[i].reshape(shape)
        values = [
            structural_similarity(
                a[j].reshape(shape),
                one,
                data_range=1.0,
                channel_axis=2 if len(shape) == 3 else None,
            )
            for j in candidates
        ]
        out.append(max(values))
    return np.array(out)


def audited(seed: int, name: str, n: int, expected: str, **options: Any) -> dict[str, Any]:
    """The class of an audit's verdict. Right where it is the class that the truth has."""
    rng = np.random.default_rng(seed)
    if name == "gaussian":
        x = rng.standard_normal((n, 200)).astype(np.float32)
    elif name in ("cifar", "fashion"):
        x = images(name, rng, n)
    else:
        x = table(name, rng, n)
    scheme = unveil.Scheme(**options.pop("scheme", {"k_private": 2}))
    result, cpu, memory = timed(lambda: unveil.audit(x, scheme, seeds=1, rng=seed, **options))
    right = result.verdict.level == expected
    return {
        "of": 1, "right": int(right), "class": result.verdict.level, "cpu": cpu, "memory": memory,
    }  # fmt: skip


# ------------------------------------------------------------------------------------------ rows


def rows() -> list[Row]:
    out: list[Row] = []

    def add(
        title: str,
        run: Callable[..., dict[str, Any]],
        seeds: int = 3,
        limit: int = 150,
        **options: Any,
    ) -> None:
        out.append(Row(title, partial(run, **options), seeds, limit))

    # The paper.
    add("paper k=2", few, k=2, n=100, m=800, d=3072)
    add("paper k=3", few, k=3, n=20, m=1000, d=6000)
    add("paper k=2 public", few, k=2, n=60, m=600, d=6000, k_public=2, n_public=300)
    add("learn_public", learned)
    add("learn_public few pixels", supports, k_public=4, n_public=10000, d=900, weighting="paper")
    add("gram_extract k=2", overlaps, k=2, n=200, m=1500, d=3072)
    add("florals k=3", florals, k=3, n=30, m=2500)
    # Gaussian vectors.
    add("gaussian k=2", gaussian, d=3072, m=500)
    add("gaussian k=3", gaussian, k=3)
    add("gaussian k=4", gaussian, k=4)
    add("gaussian k=6", gaussian, k=6, d=3072)
    add("gaussian d=10", gaussian, d=10)
    add("gaussian d=24", gaussian, d=24)
    add("gaussian m=2n k=2", gaussian, m=200)
    add("gaussian m=2n k=3", gaussian, k=3, m=200, d=1000)
    add("gaussian m=2n k=4", gaussian, k=4, m=200, d=3072)
    add("gaussian public 2", gaussian, k_public=2, n_public=1000)
    add("gaussian public 4", gaussian, k_public=4, n_public=1000, d=2000)
    add("gaussian n=1000", gaussian, n=1000, m=7000, d=3072)
    add("gaussian n=10000", gaussian, seeds=1, n=10_000, m=70_000, d=3072, limit=400)
    # Tables.
    add("breast cancer n=100", mixed, name="breast_cancer")
    add("breast cancer whole", mixed, seeds=1, name="breast_cancer", n=None)
    add("wine", mixed, name="wine", n=None)
    add("diabetes", mixed, name="diabetes")
    add("digits", mixed, name="digits")
    add("whole numbers", mixed, name="whole numbers", limit=60)
    add("binary columns", mixed, name="binary", n=175, limit=60)
    add("breast cancer k=3", mixed, name="breast_cancer", n=40, k=3, each=15)
    # Images as plain vectors.
    add("cifar k=2", mixed, name="cifar")
    add("cifar k=3", mixed, name="cifar", n=30, k=3, each=21)
    add("fashion k=2", mixed, name="fashion", n=60)
    add("not negative", mixed, name="cifar", values="not negative")
    add("float16 table", mixed, name="breast_cancer", n=80, values="float16")
    add("8 bits cifar", mixed, name="cifar", n=60, values="8 bits")
    # Noise.
    add("noise .05", gaussian, noise=0.05)
    add("noise .2", gaussian, noise=0.2)
    add("noise .4", gaussian, noise=0.4, seeds=2)
    add("noise .01 table", mixed, name="breast_cancer", noise=0.01)
    # The family.
    add("mixup equal", gaussian, signs="kept", d=200, m=400)
    add("mixup dirichlet table", mixed, name="breast_cancer", signs="kept", weighting="dirichlet")
    add("half-normal", gaussian, weighting="half-normal", n=30, m=600, d=2000)
    add("texthide", gaussian, k=2, n=60, m=1500, d=256, weighting="half-normal", signs="masked",
        masks=8)  # fmt: skip
    # Natural images.
    add("photographs", natural)
    add("photographs grey", natural, grey=True)
    add("faces", natural, private="faces", n=20, grey=True)
    add("flips", natural, flips=True, grey=True)
    add("labels", natural, labels=True)
    add("crops per epoch", natural, flips=True, crops=4, seeds=1)
    add("no public part", natural, k_public=0, seeds=2)
    add("challenge", natural, n=100, each=50, seeds=1, limit=200)
    # Audits: the class of the verdict.
    kept = {"k_private": 2, "signs": "kept"}
    audits: list[tuple[str, dict[str, Any]]] = [
        ("gaussian", {"n": 40}),
        ("wine", {"n": 60}),
        ("breast_cancer", {"n": 60}),
        ("digits", {"n": 50}),
        ("binary", {"n": 100, "expected": "leaks"}),
        ("fashion", {"n": 30}),
        ("wine", {"n": 40, "scheme": kept}),
        ("wine", {"n": 40, "scheme": {"k_private": 3}, "m": 500}),
        ("gaussian", {"n": 60, "m": 25, "expected": "partly"}),
        ("gaussian", {"n": 40, "noise": 5.0, "expected": "nothing"}),
    ]
    for name, options in audits:
        scheme = options.get("scheme", {"k_private": 2})
        what = f"k={scheme['k_private']}" + (" signs kept" if "signs" in scheme else "")
        what += "".join(f" {key}={options[key]}" for key in ("m", "noise") if key in options)
        add(f"audit {name} {what}", audited, seeds=1, name=name, **{"expected": "leaks", **options})
    return out


# -------------------------------------------------------------------------------------- measuring


def _measure(name: str, pipe: Any) -> None:
    """All seeds of one row, in a process of its own."""
    row = next(row for row in rows() if row.name == name)
    for seed in range(row.seeds):
        try:
            signal.signal(signal.SIGPROF, _stop)
            signal.setitimer(signal.ITIMER_PROF, row.limit)
            result = row.run(seed)
        except TimeoutError:
            result = {"right": 0, "verified": 0, "wrong": 0, "cpu": float(row.limit), "late": True}
        except (FileNotFoundError, ModuleNotFoundError) as error:
            result = {"missing": str(error)}
        except Exception as error:  # a row that breaks has fallen
            result = {"right": 0, "verified": 0, "cpu": 0.0, "error": repr(error)[:300]}
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send(result)
    pipe.close()


def _stop(*_: Any) -> None:
    raise TimeoutError


def measure(row: Row) -> dict[str, Any]:
    # The process that is started reads these when it loads its libraries.
    for library in ("OPENBLAS", "OMP", "MKL", "NUMBA"):
        os.environ[f"{library}_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(row.name, sender))
    process.start()
    sender.close()
    runs = []
    try:
        while len(runs) < row.seeds:
            runs.append(receiver.recv())
    except EOFError:
        runs.append({"right": 0, "verified": 0, "cpu": 0.0, "error": "the process died"})
    process.join()
    memory = max((run.pop("memory", 0) for run in runs), default=0)
    for run in runs:
        for key in ("cpu", "open", "ssim"):
            if key in run:
                run[key] = round(run[key], 4)
    return {"runs": runs, "gib": round(memory / 2**20, 2)}


def lowest(result: dict[str, Any], key: str) -> Any:
    return min((run[key] for run in result["runs"] if key in run), default=None)


def median(result: dict[str, Any], key: str) -> float | None:
    values = [run[key] for run in result["runs"] if key in run]
    return float(np.median(values)) if values else None


def fallen(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Why a row fell, in words."""
    out = [run["error"] for run in now["runs"] if "error" in run]
    for key in ("right", "verified"):
        a, b = lowest(now, key), lowest(before, key)
        if b is not None and a is not None and a < b:
            out.append(f"{key} {a}, was {b}")
    wrong = max((run.get("wrong", 0) for run in now["runs"]), default=0)
    if wrong:
        out.append(f"{wrong} wrong")
    a, b = median(now, "ssim"), median(before, "ssim")
    if a is not None and b is not None and a < b - 0.01:
        out.append(f"SSIM {a:.3f}, was {b:.3f}")
    a, b = median(now, "cpu"), median(before, "cpu")
    if a is not None and b is not None and a > 1.5 * b:
        out.append(f"{a:.1f} CPU s, was {b:.1f}")
    if now["gib"] > 1.5 * before["gib"] > 0:
        out.append(f"{now['gib']} GiB, was {before['gib']}")
    return out


def line(name: str, result: dict[str, Any]) -> str:
    runs = result["runs"]
    if all("missing" in run for run in runs):
        return f"{name:28} left out: {runs[0]['missing']}"
    words = []
    for run in runs:
        text = f"{run['right']}/{run.get('of', '?')}"
        if run.get("verified") is not None:
            text += f" v{run['verified']}"
        text += f" WRONG {run['wrong']}" if run.get("wrong") else ""
        text += f" open {run['open']:.1%}" if run.get("open") else ""
        text += f" ssim {run['ssim']:.3f}" if "ssim" in run else ""
        text += f" {run['class']}" if "class" in run else ""
        text += " LATE" if run.get("late") else ""
        text += f" {run['error']}" if "error" in run else ""
        words.append(f"{text} {run.get('cpu', 0):.1f}s")
    return f"{name:28} {' | '.join(words)}; {result['gib']} GiB"


def _read(store: Path) -> dict[str, Any]:
    return dict(json.loads(store.read_text())) if store.exists() else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", nargs="+", default=[""], help="rows whose name has this text")
    parser.add_argument(
        "--write", nargs="?", type=Path, const=STORE, metavar="FILE",
        help="store what was measured: in golden.json, the bar, or in another file",
    )  # fmt: skip
    parser.add_argument("--compare", action="store_true", help="exit with 1 where a row fell")
    options = parser.parse_args()
    stored, failed = _read(STORE), 0
    for row in rows():
        if not any(text in row.name for text in options.only):
            continue
        result = measure(row)
        print(line(row.name, result), flush=True)
        if all("missing" in run for run in result["runs"]):
            continue
        if options.compare and row.name in stored:
            reasons = fallen(result, stored[row.name])
            failed += bool(reasons)
            for reason in reasons:
                print(f"{'':28} FELL: {reason}", flush=True)
        if options.write:
            lines = (_read(options.write) | {row.name: result}).items()
            text = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in lines)
            options.write.write_text("{\n" + text + "\n}\n")
    if options.compare:
        print(f"{failed} rows fell" if failed else "no row fell")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
