"""A run directory: encodings, the truth behind them, and what was recovered.

It holds encodings.npy, public.npy, labels.npy, scheme.json, truth.npz, recovery.npz, scores.json
and manifest.json. Arrays are plain; all else is JSON.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil._version import __version__
from unveil.checks import InputError, as_shape, as_vectors
from unveil.encodings import Encodings, Simulation
from unveil.engine.files import (
    array_names,
    must_fit_as_vectors,
    read_array,
    read_json,
    whole_folder,
    write_array,
    write_arrays,
    write_json,
)
from unveil.recovery import STATUSES, Recovery
from unveil.scheme import Scheme


def write_simulation(folder: Path, simulation: Simulation, manifest: Mapping[str, Any]) -> None:
    """A run directory, complete or absent."""
    with whole_folder(folder) as part:
        write_array(part / "encodings.npy", simulation.encodings.values)
        if simulation.public is not None:
            write_array(part / "public.npy", simulation.public)
        write_scheme(part / "scheme.json", simulation.encodings)
        if simulation.encodings.labels is not None:
            write_array(part / "labels.npy", simulation.encodings.labels)
        truth: dict[str, NDArray[Any]] = {
            "private": simulation.private,
            "selection_private": simulation.selection.private,
            "selection_public": simulation.selection.public,
        }
        # Only where each encoding has weights of its own.
        for name in ("weights", "public_weights"):
            if getattr(simulation.selection, name) is not None:
                truth[f"selection_{name}"] = getattr(simulation.selection, name)
        write_arrays(part / "truth.npz", truth)
        write_json(part / "manifest.json", manifest)


def read_encodings(folder: Path) -> Encodings:
    """The encodings of a run directory."""
    scheme, pixel_rms = read_scheme(folder / "scheme.json")
    # The file keeps the older name, so that runs written before can be read.
    about = read_json(folder / "scheme.json")
    labels = read_array(folder / "labels.npy") if (folder / "labels.npy").exists() else None
    values = read_array(folder / "encodings.npy")
    must_fit_as_vectors(values, "encodings.npy")
    shape, columns = about.get("shape"), about.get("columns", ())
    return Encodings(values, scheme, pixel_rms, shape, labels, columns)


def read_truth(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
    """Private vectors, and which of them each encoding mixes (m, k_private), where the file says
    so."""
    private = as_vectors(read_array(path, "private"), "private")
    if "selection_private" not in array_names(path):
        return private, None
    mixed = read_array(path, "selection_private")
    if (
        mixed.ndim != 2
        or mixed.dtype.kind not in "iu"
        or (mixed.size and not 0 <= mixed.min() <= mixed.max() < len(private))
    ):
        raise InputError(
            f"{path.name}: selection_private must name private vectors, (m, k_private); write it "
            "again"
        )
    return private, mixed


def write_scheme(path: Path, encodings: Encodings) -> None:
    """The scheme, and what else is known of the vectors but the vectors."""
    write_json(
        path,
        {
            **asdict(encodings.scheme),
            "pixel_rms": encodings.pixel_rms,
            "shape": encodings.image_shape,
            "columns": encodings.columns,
        },
    )


def read_scheme(path: Path) -> tuple[Scheme, float | None]:
    content = read_json(path)
    # Not part of the scheme, but kept beside it.
    pixel_rms = content.pop("pixel_rms", 1.0)
    for name in ("shape", "columns"):
        content.pop(name, None)
    known = Scheme.__dataclass_fields__.keys()
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise InputError(
            f"{path.name} holds unknown keys {', '.join(unknown)}: the scheme has "
            f"{', '.join(known)}"
        )
    return Scheme(**content), pixel_rms


def write_recovery(path: Path, recovery: Recovery) -> None:
    """One file: arrays as they are, all else as JSON inside it."""
    members = recovery.members.tocsr()
    about = {
        "signed": recovery.signed,
        "reasons": list(recovery.reasons),
        "attack": recovery.attack,
        "explanation": recovery.explanation,
        "seconds": dict(recovery.seconds),
        "evidence": dict(recovery.evidence),
        "weighted": recovery.weights is not None,
        "explained": recovery.explained,
        "exact": recovery.exact,
        "columns": list(recovery.columns),
        "image_shape": recovery.image_shape,
    }
    # Sparse matrices as their plain parts: nothing in the file needs a pickle.
    arrays = {
        "vectors": recovery.vectors,
        "status": recovery.status.astype("<U10"),
        "residual": recovery.residual,
        "members_indptr": members.indptr,
        "members_indices": members.indices,
        "members_shape": np.array(members.shape),
        "about": np.array(json.dumps(about)),
    }
    if recovery.weights is not None:
        arrays["weights"] = np.asarray(
            recovery.weights.tocsr()[members.nonzero()], dtype=np.float64
        )
    if recovery.doubtful is not None:
        arrays["doubtful"] = recovery.doubtful
    write_arrays(path, arrays)


def read_recovery(path: Path) -> Recovery:
    """A recovery, every part of it held against the others: a file may come from anywhere."""
    # 1. The arrays that every recovery has.
    path = Path(path)
    fields = {
        key: read_array(path, key)
        for key in (
            "vectors",
            "status",
            "residual",
            "members_indptr",
            "members_indices",
            "members_shape",
            "about",
        )
    }
    told = "doubtful" in array_names(path)
    # 2. Whatever does not fit together is damage, and said in one sentence.
    try:
        vectors, status, residual = (fields[name] for name in ("vectors", "status", "residual"))
        doubtful = read_array(path, "doubtful") if told else None
        rows, columns = (int(size) for size in fields["members_shape"])
        if not (
            vectors.ndim == 2
            and status.shape == residual.shape == (columns,)
            and len(vectors) == columns
        ):
            raise ValueError
        if residual.dtype.kind != "f" or not {*status.tolist()} <= {*STATUSES}:
            raise ValueError
        if doubtful is not None and (doubtful.shape != vectors.shape or doubtful.dtype != bool):
            raise ValueError
        # 3. Members and weights have the same places.
        places = fields["members_indices"], fields["members_indptr"]
        members = sparse.csr_array(
            (np.ones(len(places[0]), dtype=bool), *places), shape=(rows, columns)
        )
        # Places outside the matrix would be read past its end later on.
        members.check_format(full_check=True)
        # 4. What is no array.
        about = json.loads(str(fields["about"]))
        weighted = about.pop("weighted", False)
        # Files written before these were kept lack them.
        shape, names = about.pop("image_shape", None), about.pop("columns", ())
        if (names and len(names) != vectors.shape[1]) or not all(isinstance(n, str) for n in names):
            raise ValueError
        weights = (
            sparse.csr_array((read_array(path, "weights"), *places), shape=(rows, columns))
            if weighted
            else None
        )
        return Recovery(
            vectors=as_vectors(vectors, "vectors") if vectors.size else vectors,
            status=status,
            members=members,
            residual=residual,
            weights=weights,
            doubtful=doubtful,
            columns=tuple(names),
            image_shape=None if shape is None else as_shape(shape, vectors.shape[1]),
            **{**about, "reasons": tuple(about["reasons"])},
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise InputError(f"{path.name} is damaged: run `unveil attack` again") from None


def manifest(command: str, **facts: Any) -> dict[str, Any]:
    """What a run needs to be repeated and compared: versions, hardware, peak memory, and the facts
    given."""
    # Here and not above: numba takes a second to load, and most readers do not ask for this.
    import numba
    import scipy

    return {
        "command": command,
        "unveil": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "hardware": {
            "machine": platform.machine(),
            "system": platform.system(),
            "cores": os.cpu_count(),
        },
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **facts,
    }
