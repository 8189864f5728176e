"""Resume: blocks come back as written, other inputs have other folders, damaged blocks are computed
again."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from unveil import Encodings, Scheme, Supports, gram_extract, simulate
from unveil.engine.blocks import using
from unveil.paper.gram_extract import overlap_engine

SMALL = {"memory_limit": 200_000}


def same(a, b):
    pairs = [
        (a.matrix.indptr, b.matrix.indptr),
        (a.matrix.indices, b.matrix.indices),
        (a.matrix.data, b.matrix.data),
    ]
    return a.expected_errors == b.expected_errors and all(
        x.tobytes() == y.tobytes() for x, y in [*pairs, (a.confidence, b.confidence)]
    )


@pytest.fixture
def sim():
    return simulate(Scheme(2), 15, m=60, d=500, rng=0)


def test_a_second_run_reads_what_the_first_has_written(sim, tmp_path, monkeypatch):
    first = gram_extract(sim.encodings, checkpoint=tmp_path, **SMALL)
    assert same(first, gram_extract(sim.encodings, **SMALL))

    def never(*_):
        raise AssertionError("computed again")

    monkeypatch.setattr("unveil.paper.overlap_engine.OverlapEngine.block", never)
    assert same(first, gram_extract(sim.encodings, checkpoint=tmp_path, **SMALL))
    with using(checkpoint=tmp_path):
        assert same(first, gram_extract(sim.encodings, **SMALL))


def test_missing_and_damaged_blocks_are_computed_again(sim, tmp_path):
    first = gram_extract(sim.encodings, checkpoint=tmp_path, **SMALL)
    files = sorted(tmp_path.rglob("block-*.npz"))
    assert len(files) > 3
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:100])
    files[2].write_bytes(b"")
    assert same(first, gram_extract(sim.encodings, checkpoint=tmp_path, **SMALL))


def test_whatever_decides_the_blocks_changes_the_folder(tmp_path):
    sim = simulate(Scheme(2, 2), 15, n_public=9, m=30, d=100, rng=0)
    S = Supports(sim.selection.public, np.ones(30), "given")
    other = sim.encodings.values.copy()
    other[17, 3] += 1e-6
    moved = Supports(np.roll(sim.selection.public, 1, axis=0), np.ones(30), "given")
    for encodings, public, supports, options in (
        (sim.encodings, sim.public, S, {}),
        (Encodings(other, sim.encodings.scheme), sim.public, S, {}),
        (sim.encodings, sim.public + 1e-6, S, {}),
        (sim.encodings, sim.public, moved, {}),
        (sim.encodings, sim.public, S, {"statistic": "folded"}),
    ):
        gram_extract(encodings, public, supports=supports, checkpoint=tmp_path, **options)
    assert len(list(tmp_path.iterdir())) == 5


WORK = """
import sys, time, numpy as np, unveil
values = np.load(sys.argv[1])
unveil.gram_extract(
    unveil.Encodings(values, unveil.Scheme(2)), memory_limit=200_000, checkpoint=sys.argv[2], workers=1,
    progress=lambda *_: time.sleep(0.01),
)
"""


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(sim, tmp_path):
    np.save(tmp_path / "y.npy", sim.encodings.values)
    folder = tmp_path / "blocks"
    process = subprocess.Popen([sys.executable, "-c", WORK, tmp_path / "y.npy", folder])
    for _ in range(6000):
        if len(list(folder.rglob("block-*.npz"))) >= 3 or process.poll() is not None:
            break
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    left = len(list(folder.rglob("block-*.npz")))
    assert 3 <= left < len(overlap_engine(sim.encodings, **SMALL).plan.tasks)
    assert same(
        gram_extract(sim.encodings, checkpoint=folder, **SMALL),
        gram_extract(sim.encodings, **SMALL),
    )
