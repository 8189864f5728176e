"""Which files of the library do four everyday calls enter, and in what order?

    python -m tools.walks            print the lists
    python -m tools.walks --write    write them into docs/architecture.md

Each call runs once to load and compile, and once under a profiler hook. A file counts when one of
its functions is called; imports do not count.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import numpy as np
from click.testing import CliRunner

import unveil

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
HOUSE = Path(unveil.__file__).resolve().parent


def files_entered(call: Callable[[], Any]) -> list[str]:
    """Files of the library that a call enters, in the order in which it first does."""
    call()
    entered: dict[str, None] = {}

    def hook(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and HOUSE in path.parents:
            entered.setdefault(path.relative_to(HOUSE).as_posix(), None)

    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(entered)


def gaussian() -> None:
    sim = unveil.simulate(unveil.Scheme(2), n_private=60, m=500, d=800, rng=0)
    unveil.recover(sim.encodings, rng=0)


def table(n: int = 60, columns: int = 20, m: int = 420) -> None:
    """Skewed columns, some of them whole numbers."""
    rng = np.random.default_rng(0)
    x = rng.gamma(2, size=(n, columns)).astype(np.float32)
    x[:, ::4] = np.round(x[:, ::4])
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    pairs = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    values = np.abs(x[pairs].sum(axis=1)) / np.float32(2**0.5)
    unveil.recover(unveil.Encodings(values, unveil.Scheme(2), pixel_rms=None), rng=0)


def paper() -> None:
    sim = unveil.simulate(unveil.Scheme(2), n_private=20, m=200, d=4000, rng=0)
    unveil.learn_private_image(sim.encodings, rng=0)


def audit(records: int = 30, columns: int = 12) -> None:
    from unveil.cli import main

    values = np.random.default_rng(0).gamma(2, size=(records, columns))
    with TemporaryDirectory() as folder:
        file, out = f"{folder}/table.csv", f"{folder}/out"
        names = ",".join(f"c{i}" for i in range(columns))
        np.savetxt(file, values, delimiter=",", header=names, comments="")
        arguments = ["audit", "--private", file, "--out", out, "--seeds", "1", "--json"]
        CliRunner().invoke(main, arguments, catch_exceptions=False)


WALKS: dict[str, Callable[[], None]] = {
    "`recover` on Gaussian vectors": gaussian,
    "`recover` on a table": table,
    "the paper's attack": paper,
    "`unveil audit` of a table": audit,
}


def section() -> str:
    """The four walks, in Markdown."""
    parts = []
    for name, call in WALKS.items():
        files = files_entered(call)
        parts.append(f"**{name}**: {len(files)} files.\n")
        parts.append(" → ".join(f"`{file}`" for file in files) + "\n")
    return "\n".join(parts)


def main(arguments: list[str]) -> None:
    text = section()
    if "--write" not in arguments:
        print(text)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition("<!-- walks -->\n")
    _, _, after = rest.partition("<!-- end of walks -->")
    made = f"{before}<!-- walks -->\n{text}<!-- end of walks -->{after}"
    PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
