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
    about = read_json(folder / "scheme.json")
    labels = read_array(folder / "labels.npy") if (folder / "labels.npy").exists() else None
    values = read_array(folder / "encodings.npy")
    must_fit_as_vectors(values, "encodings.npy")
    # The file keeps the older name, so that runs written before can be read.
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
    about = {"shape": encodings.image_shape, "columns": encodings.columns}
    write_json(path, {**asdict(encodings.scheme), "pixel_rms": encodings.pixel_rms, **about})


def read_scheme(path: Path) -> tuple[Scheme, float | None]:
    """The scheme, and the root mean square of a private pixel."""
    beside = {"pixel_rms", "shape", "columns"}
    content, known = read_json(path), Scheme.__dataclass_fields__.keys()
    unknown = sorted(set(content) - set(known) - beside)
    if unknown:
        raise InputError(
            f"{path.name} holds unknown keys {', '.join(unknown)}: the scheme has "
            f"{', '.join(known)}"
        )
    scheme = Scheme(**{name: value for name, value in content.items() if name not in beside})
    return scheme, content.get("pixel_rms", 1.0)


def write_recovery(path: Path, recovery: Recovery) -> None:
    """One file: arrays as they are, all else as JSON inside it."""
    members = recovery.members.tocsr()
    about = {name: getattr(recovery, name) for name in _WORDS}
    # Sparse matrices as their plain parts: nothing in the file needs a pickle.
    arrays = {
        "vectors": recovery.vectors,
        "status": recovery.status.astype("<U10"),
        "residual": recovery.residual,
        "members_indptr": members.indptr,
        "members_indices": members.indices,
        "members_shape": np.array(members.shape),
        "about": np.array(json.dumps(about, default=dict)),
    }
    if recovery.weights is not None:
        weights = recovery.weights.tocsr()[members.nonzero()]
        arrays["weights"] = np.asarray(weights, dtype=np.float64)
    if recovery.doubtful is not None:
        arrays["doubtful"] = recovery.doubtful
    write_arrays(path, arrays)


_WORDS = (
    *("signed", "reasons", "attack", "explanation", "seconds", "evidence", "explained", "exact"),
    *("columns", "image_shape"),
)


def read_recovery(path: Path) -> Recovery:
    """A recovery, every part of it held against the others: a file may come from anywhere."""
    path = Path(path)
    names = ("vectors", "status", "residual", "members_indptr", "members_indices", "members_shape")
    here = array_names(path)
    vectors, status, residual, indptr, indices, shape, words = (
        read_array(path, name) for name in (*names, "about")
    )
    doubtful, weights = (
        read_array(path, name) if name in here else None for name in ("doubtful", "weights")
    )
    # Whatever does not fit together is damage, and said in one sentence.
    try:
        rows, columns = (int(size) for size in shape)
        about = json.loads(str(words))
        about.pop("weighted", None)  # earlier versions said so
        labels = tuple(about.pop("columns", ()))
        image_shape = about.pop("image_shape", None)

        def matrix(data: NDArray[Any]) -> sparse.csr_array:
            made = sparse.csr_array((data, indices, indptr), shape=(rows, columns))
            # Places outside the matrix would be read past its end later on.
            made.check_format(full_check=True)
            return made

        if not (
            vectors.ndim == 2
            and status.shape == residual.shape == (columns,) == (len(vectors),)
            and residual.dtype.kind == "f"
            and {*status.tolist()} <= {*STATUSES}
            and (doubtful is None or (doubtful.dtype == bool and doubtful.shape == vectors.shape))
            and (not labels or len(labels) == vectors.shape[1])
            and all(isinstance(name, str) for name in labels)
        ):
            raise ValueError
        return Recovery(
            vectors=as_vectors(vectors, "vectors") if vectors.size else vectors,
            status=status,
            members=matrix(np.ones(len(indices), dtype=bool)),
            residual=residual,
            weights=None if weights is None else matrix(weights),
            doubtful=doubtful,
            columns=labels,
            image_shape=None if image_shape is None else as_shape(image_shape, vectors.shape[1]),
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
