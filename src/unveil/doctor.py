"""Is this installation healthy? One finding per check; every one that fails names its cure."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

EXTRAS = ("images", "frames", "sdp", "dask")
"""Optional parts that a user may want; the others are for those who change Unveil."""
_NEED = re.compile(r"([\w.-]+?)(?:\[.*\])?>=([\d.]+)(?:;.*?[\"'](\w+)[\"'])?")


def examine() -> Iterator[dict[str, Any]]:
    """One finding per check; a missing extra is worth a line but no illness."""
    from importlib.metadata import requires

    yield _finding(
        "python", "install Python 3.11 or newer", lambda: _at_least(sys.version.split()[0], "3.11")
    )
    # Read from the installed package: what is asked for is said once, in pyproject.toml.
    for need in requires("unveil") or ():
        name, least, extra = _NEED.fullmatch(need).groups()  # type: ignore[union-attr]
        # Extras of developers are no matter of health.
        if extra in (None, *EXTRAS):
            label, target = (
                (f"{name} (extra {extra})", f"unveil[{extra}]")
                if extra
                else (name, f"{name}>={least}")
            )
            look = partial(_package, name, least)
            yield _finding(label, f"pip install '{target}'", look, optional=extra is not None)
    yield _finding("BLAS", "pip install --force-reinstall numpy scipy threadpoolctl", _blas)
    yield _finding("free memory", "close other programs: attacks want 1 GiB or more", _memory)
    yield _finding("numba cache", "set NUMBA_CACHE_DIR to a folder you may write to", _numba_cache)
    yield _finding(
        "self-test",
        "pip install --force-reinstall unveil, and report it if that does not help",
        _self_test,
    )


def _finding(
    name: str, cure: str, look: Callable[[], str], *, optional: bool = False
) -> dict[str, Any]:
    try:
        return {"check": name, "ok": True, "found": look(), "cure": None}
    except Exception as error:  # whatever is broken here is what the user came to hear
        return {
            "check": name,
            "ok": optional,
            "found": str(error) or type(error).__name__,
            "cure": cure,
        }


def _at_least(found: str, least: str) -> str:
    # Numbers, not text: as text 1.9 would be newer than 1.24.
    have, want = ([int(part) for part in re.findall(r"\d+", text)] for text in (found, least))
    if have < want:
        raise RuntimeError(f"{found} is older than {least}")
    return found


def _package(name: str, least: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return _at_least(version(name), least)
    except PackageNotFoundError:
        raise RuntimeError("not installed") from None


def _blas() -> str:
    import scipy.linalg  # noqa: F401  (threadpoolctl sees only what is loaded)
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    names = sorted(
        {
            f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
            for pool in pools
        }
    )
    return "; ".join(names) or "one that threadpoolctl does not know"


def _memory() -> str:
    from unveil.engine.blocks import free_memory

    gib = free_memory() / 2**30
    if gib < 1:
        raise RuntimeError(f"{gib:.1f} GiB")
    return f"{gib:.1f} GiB"


def _numba_cache() -> str:
    from numba.core import config
    from numba.misc.appdirs import AppDirs

    asked = getattr(config, "CACHE_DIR", "")
    others = AppDirs("numba", False).user_cache_dir  # type: ignore[no-untyped-call]
    # Where Numba itself looks, in its order: beside the code, else in the user's cache.
    places = [asked] if asked else [Path(__file__).parent, others]
    for folder in map(Path, places):
        with suppress(OSError), tempfile.TemporaryFile(dir=folder):
            return str(folder)
    raise RuntimeError(f"{places[0]} is not writable, so every start compiles anew")


def _self_test() -> str:
    import unveil

    # The whole path once, kernels compiled: a broken BLAS or Numba shows here and nowhere else.
    start = time.perf_counter()
    simulation = unveil.simulate(unveil.Scheme(k_private=2), 20, m=120, d=1024, rng=0)
    scores = unveil.score(unveil.recover(simulation.encodings, rng=0), simulation.private)
    if scores.exact != 20 or scores.wrong:
        raise RuntimeError(f"{scores.exact} vectors exact instead of 20, {scores.wrong} wrong")
    return f"20 of 20 vectors recovered exactly in {time.perf_counter() - start:.1f} s"
