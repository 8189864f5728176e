"""`unveil doctor`: is this installation healthy? One line per check; each that fails names its
cure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import click
from rich.markup import escape
from rich.table import Table

from unveil.cli.group import main
from unveil.cli.options import as_json
from unveil.cli.terminal import console, echo_json

EXTRAS = ("images", "sdp", "dask")
"""Optional parts that a user may want; the others are for those who change Unveil."""


@main.command()
@as_json
def doctor(as_json: bool) -> int:
    """Is this installation healthy?

    Versions, BLAS, memory, and a tiny attack that must succeed; every line that fails names its
    cure.
    """
    if not as_json:
        # The first attack on a machine compiles its kernels, and says nothing meanwhile.
        click.echo("Looking. Half a minute the first time, then a few seconds.", err=True)
    findings = list(examine())
    healthy = all(finding["ok"] for finding in findings)
    if as_json:
        echo_json({"healthy": healthy, "checks": findings})
    else:
        ill = "[bold red]Not healthy: each line marked ✗ names its cure.[/]"
        console().print("[bold]Healthy.[/]" if healthy else ill)
        table = Table(box=None, show_header=False)
        for finding in findings:
            # Three states: broken, not there but not needed, well.
            bad = "[dim]–[/]" if finding["ok"] else "[red]✗[/]"
            cure = f"  → {finding['cure']}" if finding["cure"] else ""
            mark = bad if cure else "[green]✓[/]"
            table.add_row(mark, escape(finding["check"]), escape(finding["found"] + cure))
        console().print(table)
    return 0 if healthy else 3


def examine() -> Iterator[dict[str, Any]]:
    """One finding per check; a missing extra is worth a line but no illness."""
    from importlib.metadata import requires, version

    # Read from the installed package: what is asked for is said once, in pyproject.toml.
    for need in requires("unveil") or ():
        name, extra = re.split(r"[^\w.-]", need)[0], re.search(r"extra == ['\"](\w+)", need)
        # Extras of developers are no matter of health.
        if extra is None or extra[1] in EXTRAS:
            label = f"{name} (extra {extra[1]})" if extra else name
            cure = f"pip install '{f'unveil[{extra[1]}]' if extra else need}'"
            yield _finding(label, cure, partial(version, name), optional=extra is not None)
    yield _finding("BLAS", "pip install --force-reinstall numpy scipy threadpoolctl", _blas)
    yield _finding("free memory", "close other programs: attacks want 1 GiB or more", _memory)
    yield _finding("numba cache", "set NUMBA_CACHE_DIR to a folder you may write to", _numba_cache)
    again = "pip install --force-reinstall unveil, and report it if that does not help"
    yield _finding("self-test", again, _self_test)


def _finding(
    name: str, cure: str, look: Callable[[], str], *, optional: bool = False
) -> dict[str, Any]:
    try:
        return {"check": name, "ok": True, "found": look(), "cure": None}
    except Exception as error:  # whatever is broken here is what the user came to hear
        missing = isinstance(error, ModuleNotFoundError)
        found = "not installed" if missing else str(error) or type(error).__name__
        return {"check": name, "ok": optional, "found": found, "cure": cure}


def _blas() -> str:
    import scipy.linalg  # noqa: F401  (threadpoolctl sees only what is loaded)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = (f"{p['internal_api']} {p['version']}, {p['num_threads']} threads" for p in pools)
    return "; ".join(sorted(set(names))) or "one that threadpoolctl does not know"


def _memory() -> str:
    from unveil.engine.blocks import free_memory

    size = f"{free_memory() / 2**30:.1f} GiB"
    if free_memory() < 2**30:
        raise RuntimeError(size)
    return size


def _numba_cache() -> str:
    from unveil.encode import copies

    # Numba looked for a folder it may write to when the kernel was imported, or refused.
    kernel: Any = copies._move
    return str(kernel._cache.cache_path)


def _self_test() -> str:
    import unveil

    # The whole path once, kernels compiled: a broken BLAS or Numba shows here and nowhere else.
    start = time.perf_counter()
    simulation = unveil.simulate(unveil.Scheme(k_private=2), 20, m=120, d=1024, rng=0)
    scores = unveil.score(unveil.recover(simulation.encodings, rng=0), simulation.private)
    if scores.exact != 20 or scores.wrong:
        raise RuntimeError(f"{scores.exact} vectors exact instead of 20, {scores.wrong} wrong")
    return f"20 of 20 vectors recovered exactly in {time.perf_counter() - start:.1f} s"
