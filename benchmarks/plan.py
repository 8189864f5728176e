"""The plan against reality: seconds and memory of ten instances, each in a process of its own,
within a factor of 2.

Seconds are CPU seconds with one thread, kernels compiled beforehand: wall time on a shared machine
says little. Memory is the peak of the process. `python -m benchmarks.plan`; with `--stages` also
those of every stage, which is what the coefficients in `unveil.auditing.costs` are fitted to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from benchmarks.table import Row

INSTANCES = (
    # (k_private, k_public, n_private, n_public, m, d)
    (2, 0, 40, 0, 280, 784),
    (2, 0, 60, 0, 420, 2048),
    (2, 0, 100, 0, 450, 1024),
    (2, 0, 200, 0, 1400, 512),
    (2, 0, 1000, 0, 7000, 1024),
    (3, 0, 60, 0, 420, 784),
    (3, 0, 100, 0, 700, 3072),
    (4, 0, 80, 0, 560, 1024),
    (2, 2, 60, 300, 420, 1024),
    (2, 2, 100, 800, 700, 784),
)

CHILD = """
import json, resource, sys, time
import unveil
from unveil.parallel import one_blas_thread, using
k, kp, n, npub, m, d = json.loads(sys.argv[1])
scheme = unveil.Scheme(k, kp)
with using(workers=1), one_blas_thread():
    for count, rows, pixels in ((12, 120, 900), (60, 520, 1500)):
        warm = unveil.simulate(scheme, count, n_public=20 if kp else 0, m=rows if not kp else 120, d=pixels, rng=1)
        unveil.recover(warm.encodings, warm.public, attack="full", rng=0)
    plan = unveil.plan(scheme, n, m, d, n_public=npub)
    sim = unveil.simulate(scheme, n, n_public=npub, m=m, d=d, rng=0)
    start = time.process_time()
    found = unveil.recover(sim.encodings, sim.public, rng=0)
    seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
stages = {s.name: s.seconds for s in plan.stages}
print(json.dumps([plan.seconds, seconds, plan.memory, peak, stages, dict(found.seconds), int(found.verified.sum())]))
"""


def run(instance: tuple[int, ...], stages: bool = False) -> Row:
    one = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-c", CHILD, json.dumps(instance)]
    done = subprocess.run(
        command, env={**os.environ, **one}, capture_output=True, text=True, check=True, timeout=600
    )
    told, seconds, memory, peak, forecast, measured, verified = json.loads(done.stdout)
    k, kp, n, npub, m, d = instance
    what = f"k={k}, n={n}, m={m:,}, d={d}" + (f", k_public={kp}, n_public={npub}" if kp else "")
    text = f"{told:.2f} s forecast, {seconds:.2f} s measured; {memory / 2**20:.0f} MiB forecast, {peak / 2**20:.0f} MiB measured"
    text += f"; {verified} of {n} verified"
    if stages:
        text += "; " + ", ".join(
            f"{s} {t:.2f}/{measured.get(s, 0):.2f}" for s, t in forecast.items()
        )
    return (
        what,
        "both within a factor of 2",
        text,
        0.5 <= told / seconds <= 2 and 0.5 <= memory / peak <= 2,
    )


def rows(stages: bool = False) -> list[Row]:
    return [run(instance, stages) for instance in INSTANCES]


if __name__ == "__main__":
    from benchmarks.table import show

    show("The plan against reality", rows("--stages" in sys.argv))
