"""Every command of README and docs, run as it is printed: `python -m tools.docs_commands`, which is
`make commands`, part of CI. About five minutes.

A command is a line of an indented or fenced block that starts with unveil, python, make, pip or
eval. All of a page run in its order in one new folder, which holds what they name: features.csv,
released.npy, photos and so on, made here and small. Exit codes 0 and 1 (a gate that closes) are
what a reader expects; anything else is a broken page.

`ELSEWHERE` lists the few that are not run here, and why. Tests look at every command too: that it
is known, and that its options exist; those of `QUICK` they run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMAND = re.compile(
    r"^(?: {4,}(?:- run: )?|(?:- run: )?)((?:unveil|python|make|pip|eval|\.venv/bin/python) .*)$"
)
SHELL = {"bash", "console", "sh", "shell", "yaml"}
"""Languages of fenced blocks that hold commands."""
ELSEWHERE = {
    "make test": "the first line of .ci/run",
    "make lint": "in .ci/run",
    "make docs": "in .ci/run",
    "make audit": "unveil audit, after an installation that .ci/run has made",
    "make gallery": "ten minutes; `make notebooks` runs the same code and keeps nothing",
    "make bench": "an hour: comparisons with peers",
    "make container-wheels": "needs the network; tools/check_wheel.sh installs from such wheels",
    "pip install .": "tools/check_wheel.sh, in .ci/run",
    ".venv/bin/python -m pytest": "parts of `make test`",
    ".venv/bin/python -m examples.make_gallery": "the first part of `make gallery`; tests draw too",
    ".venv/bin/python tools/draw_house.py": "tests compare the picture",
    "unveil attack encodings.npy --k-public 4": "pictures, minutes; tests of "
    "the command line attack smaller ones, and `python -m benchmarks.images` these",
    "python -m benchmarks": "minutes to hours: `python -m benchmarks.run` runs all of them",
    "unveil attack RUN --scheduler tcp": "needs a cluster; tests start one on this machine",
    "python -m experiments.compare": "minutes; tests/experiments/test_compare.py runs one family",
}
"""Beginning of a command, and where it is run instead."""
QUICK = (
    "unveil attack released",
    "unveil attack RUN",
    "unveil plan",
    "unveil export found",
    "eval",
)
"""Beginnings of commands that take a second or two: tests run them."""
SECONDS = 600
"""A command that takes longer hangs."""

ENCODER = '''"""Two encoders for the audit."""

import numpy as np


def encode(private, public, rng):
    rng = rng or np.random.default_rng()
    pairs = np.array([rng.choice(len(private), 2, replace=False) for _ in range(5 * len(private))])
    return np.abs(private[pairs].sum(axis=1) / np.sqrt(2))


class Encoder:
    def encode(self, private, public, rng):
        return encode(private, public, rng)
'''


def commands(page: Path) -> list[str]:
    """What a page tells its reader to type, in order, without the remarks behind #."""
    found, fence = [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            fence = (line[3:].strip() or "text") if fence is None else None
            continue
        block = fence in SHELL if fence is not None else line.startswith("    ")
        match = COMMAND.match(line.rstrip()) if block else None
        if match:
            found.append(re.sub(r"\s+#.*$", "", match[1]).strip())
    return found


def elsewhere(command: str) -> str | None:
    """Where a command is run, if not here."""
    return next((why for start, why in ELSEWHERE.items() if command.startswith(start)), None)


def prepare(folder: Path) -> None:
    """The files that commands name, small."""
    import numpy as np

    import unveil
    from unveil.shown import png_of

    rng = np.random.default_rng(0)
    people = rng.normal([41, 52e3, 172, 70, 64, 121], [12, 9e3, 9, 11, 8, 14], (24, 6))
    header = "age,income,height,weight,pulse,pressure"
    for name in ("features.csv", "data/features.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        np.savetxt(folder / name, people, delimiter=",", header=header, comments="", fmt="%.2f")
    regions = ["south", "north", "north"] * 8
    rows = [f"{a:.0f};{r};{b:.0f}" for (a, b, *_), r in zip(people, regions, strict=True)]
    rows[5] = rows[5].rsplit(";", 1)[0] + ";"  # a missing cell
    (folder / "people.csv").write_text("\n".join(["age;region;income", *rows]) + "\n")
    (folder / "classes.csv").write_text("class\n" + "\n".join(["a", "b"] * 12) + "\n")
    sim = unveil.simulate(unveil.Scheme(2), n_private=20, m=140, d=30, rng=0)
    for name, values in {"released": sim.encodings.values, "private": sim.private}.items():
        np.save(folder / f"{name}.npy", values)
        np.save(folder / "data" / f"{name}.npy", values)
    for name in ("photos", "others"):
        (folder / name).mkdir()
        for number, image in enumerate(rng.integers(0, 256, (12, 32, 32, 3)).astype(np.uint8)):
            (folder / name / f"{number:02d}.png").write_bytes(png_of(image))
    (folder / "encoder.py").write_text(ENCODER)
    (folder / "audit.toml").write_text((ROOT / "examples" / "audit.toml").read_text())
    sim.save(folder / "RUN")
    # What an earlier command of another page has left.
    unveil.recover(sim.encodings, rng=0).save(folder / "recovery.npz")
    (folder / "found").mkdir()
    (folder / "recovery.npz").rename(folder / "found" / "recovery.npz")


def make_room(command: str, folder: Path) -> None:
    """The program overwrites no result; one of an earlier page goes out of the way."""
    words = shlex.split(command)
    if "--out" in words or "export" in words:
        place = folder / (words[words.index("--out") + 1] if "--out" in words else words[-1])
        if place.exists():
            place.rename(place.with_name(f"{place.name}-{time.monotonic_ns()}"))


def run(command: str, folder: Path) -> int:
    """Its exit code, in a shell in which `unveil` and `python` are those of this interpreter."""
    tools = folder / ".bin"
    if not tools.is_dir():
        tools.mkdir()
        (tools / "unveil").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m unveil "$@"\n')
        (tools / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        for tool in tools.iterdir():
            tool.chmod(0o755)
    make_room(command, folder)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        sys.stderr.write(done.stdout[-2000:] + done.stderr[-2000:])
        return done.returncode or 99
    return 0


def all_commands() -> Iterator[tuple[Path, str]]:
    """(page, command), every command once per page."""
    for page in PAGES:
        for command in dict.fromkeys(commands(page)):
            yield page, command


def main(arguments: list[str]) -> int:
    broken = []
    with TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder)
        done: set[str] = set()
        for page, command in all_commands():
            why = elsewhere(command)
            if why is not None or command in done:
                continue
            if arguments and not any(part in command for part in arguments):
                continue
            done.add(command)
            start = time.perf_counter()
            code = run(command, folder)
            seconds = time.perf_counter() - start
            print(
                f"{'ok' if not code else f'EXIT {code}':8}{seconds:6.1f} s  {command}", flush=True
            )
            if code:
                broken.append(f"{page.name}: {command}")
    print("\n".join(["", *broken]) if broken else f"{len(done)} commands run as printed")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
