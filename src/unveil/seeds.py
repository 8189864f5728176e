"""Random numbers: an int, a Generator or None at every public border; each stage has its own named
child.

The same seed gives the same bytes, and drawing more in one stage never shifts what another stage
sees.
"""

from __future__ import annotations

import zlib

import numpy as np

from unveil.checks import InputError, is_count

Rng = int | np.random.Generator | None


def root(rng: Rng) -> np.random.SeedSequence:
    """The seed behind `rng`; a Generator is advanced, so two calls with it differ."""
    # Two numbers of 63 bits: enough entropy that no two draws give the same seed.
    if isinstance(rng, np.random.Generator):
        return np.random.SeedSequence(rng.integers(0, 2**63, size=2).tolist())
    if rng is None:
        return np.random.SeedSequence()
    if not is_count(rng):
        raise InputError(
            f"rng={rng!r}: give a whole number of 0 or more, a numpy Generator, or None"
        )
    return np.random.SeedSequence(int(rng))


def child(parent: np.random.SeedSequence, name: str) -> np.random.Generator:
    """The generator of the stage `name`."""
    # A checksum of the name, not its place in a list: a stage that is added shifts no other.
    key = (*parent.spawn_key, zlib.crc32(name.encode()))
    return np.random.default_rng(np.random.SeedSequence(parent.entropy, spawn_key=key))
