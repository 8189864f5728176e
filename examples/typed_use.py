"""A user's script that passes `mypy --strict`: what comes back of a table, as a table."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import unveil


def recovered(table: NDArray[np.float64], m: int, folder: Path) -> unveil.Recovery:
    """Encode a table, attack the encodings, keep what came back."""
    scheme = unveil.Scheme(k_private=2)
    sim = unveil.simulate(scheme, private=table, m=m, rng=0)
    recovery: unveil.Recovery = unveil.recover(sim.encodings, rng=0)
    scores: unveil.Scores = unveil.score(recovery, sim.private)
    print(f"exact {scores.exact}, wrong {scores.wrong}, missing {scores.missing}")
    kept: Path = recovery.save(folder / "recovered.csv")
    recovery.plot().savefig(folder / "recovered.png")
    print(kept.name, len(recovery.to_json()) > 0)
    return recovery


def from_file(path: Path) -> NDArray[np.bool_]:
    """Encodings that somebody else made, from a path as it is."""
    encodings = unveil.Encodings(path, unveil.Scheme(k_private=2), pixel_rms=None)
    return unveil.recover(encodings, rng=0).verified


if __name__ == "__main__":
    values: NDArray[np.float64] = np.random.default_rng(0).normal(size=(12, 6))
    recovered(values, 80, Path("."))
