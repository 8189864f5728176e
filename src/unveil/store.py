"""Files: arrays without pickles, written whole or not at all.

A run directory holds encodings.npy, public.npy, labels.npy, scheme.json, truth.npz, recovery.npz, scores.json, manifest.json.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from unveil._version import __version__
from unveil.records import Encodings, InputError, Recovery, Scheme, Simulation, as_vectors

_MAP_FROM = 64 << 20


def read_array(path: Path, key: str | None = None) -> NDArray[Any]:
    """One array from .npy (memory-mapped when large) or .npz; never a pickle."""
    path = Path(path)
    if not path.is_file():
        raise InputError(f"no file {path}: check the path")
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                names = archive.files
                if key is None and len(names) != 1:
                    raise InputError(
                        f"{path.name} holds {len(names)} arrays ({', '.join(names[:6])}): save the one meant as .npy"
                    )
                if key is not None and key not in names:
                    raise InputError(f"{path.name} holds no array '{key}': is it the right file?")
                return np.asarray(archive[key or names[0]])
        large = path.stat().st_size >= _MAP_FROM
        array = np.load(path, mmap_mode="r" if large else None, allow_pickle=False)
    except (InputError, PermissionError):
        raise
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError, SyntaxError) as error:
        if "allow_pickle" in str(error) or "Object arrays" in str(error):
            raise InputError(
                f"{path.name} is a pickle, which may run code when opened: save it again as a plain .npy array"
            ) from None
        raise InputError(
            f"{path.name} is not a readable .npy or .npz array (truncated or of another format): write it again with numpy.save"
        ) from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise InputError(f"{path.name} is an archive of arrays: give it the suffix .npz")
    return array


def read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"no file {path}: check the path")
    try:
        content = json.loads(path.read_text())
    except (ValueError, UnicodeDecodeError):
        raise InputError(f"{path.name} is not valid JSON: write it again") from None
    if not isinstance(content, dict):
        raise InputError(f"{path.name} must hold one JSON object")
    return content


def write_array(path: Path, array: NDArray[Any]) -> None:
    with _whole(path) as file:
        np.save(file, array, allow_pickle=False)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    with _whole(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    with _whole(path) as file:
        file.write((json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def write_text(path: Path, text: str) -> None:
    """As UTF-8; names of files that are not text themselves are spelled out with backslashes."""
    with _whole(path) as file:
        file.write(text.encode(errors="backslashreplace"))


def must_be_new(folder: Path) -> None:
    """Asked before the work, so that hours of it are not lost to a name that is taken."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not an empty folder: choose another name or empty it")


@contextmanager
def whole_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes its name only when all went well."""
    folder = Path(folder)
    must_be_new(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as shelter:
        part = Path(shelter) / folder.name
        part.mkdir()
        yield part
        part.rename(folder)


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
        for name in ("weights", "public_weights"):
            if getattr(simulation.selection, name) is not None:
                truth[f"selection_{name}"] = getattr(simulation.selection, name)
        write_arrays(part / "truth.npz", truth)
        write_json(part / "manifest.json", manifest)


def read_encodings(folder: Path) -> Encodings:
    """The encodings of a run directory."""
    scheme, pixel_rms = read_scheme(folder / "scheme.json")
    shape = read_json(folder / "scheme.json").get("shape")
    labels = read_array(folder / "labels.npy") if (folder / "labels.npy").exists() else None
    return Encodings(read_array(folder / "encodings.npy"), scheme, pixel_rms, shape, labels)


def read_truth(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
    """Private vectors, and which of them each encoding mixes (m, k_private), where the file says so."""
    private = read_array(path, "private")
    with np.load(path, allow_pickle=False) as archive:
        return private, archive["selection_private"] if "selection_private" in archive.files else None


def write_scheme(path: Path, encodings: Encodings) -> None:
    """The scheme, and what else is known of the vectors but the vectors."""
    write_json(path, {**asdict(encodings.scheme), "pixel_rms": encodings.pixel_rms, "shape": encodings.shape})


def read_scheme(path: Path) -> tuple[Scheme, float | None]:
    content = read_json(path)
    pixel_rms = content.pop("pixel_rms", 1.0)
    content.pop("shape", None)
    known = Scheme.__dataclass_fields__.keys()
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise InputError(f"{path.name} holds unknown keys {', '.join(unknown)}: the scheme has {', '.join(known)}")
    return Scheme(**content), pixel_rms


def write_recovery(path: Path, recovery: Recovery) -> None:
    members = recovery.members.tocsr()
    about = {
        "signed": recovery.signed,
        "reasons": list(recovery.reasons),
        "attack": recovery.attack,
        "explanation": recovery.explanation,
        "seconds": dict(recovery.seconds),
        "evidence": dict(recovery.evidence),
        "weighted": recovery.weights is not None,
    }
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
        arrays["weights"] = np.asarray(recovery.weights.tocsr()[members.nonzero()], dtype=np.float64)
    write_arrays(path, arrays)


def read_recovery(path: Path) -> Recovery:
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
    try:
        indices = fields["members_indices"]
        rows, columns = (int(size) for size in fields["members_shape"])
        ones = np.ones(len(indices), dtype=bool)
        about = json.loads(str(fields["about"]))
        places = indices, fields["members_indptr"]
        weighted = about.pop("weighted", False)
        weights = sparse.csr_array((read_array(path, "weights"), *places), shape=(rows, columns)) if weighted else None
        return Recovery(
            vectors=as_vectors(fields["vectors"], "vectors") if fields["vectors"].size else fields["vectors"],
            status=fields["status"],
            members=sparse.csr_array((ones, *places), shape=(rows, columns)),
            residual=fields["residual"],
            weights=weights,
            **{**about, "reasons": tuple(about["reasons"])},
        )
    except (ValueError, TypeError, KeyError):
        raise InputError(f"{path.name} is damaged: run `unveil attack` again") from None


def manifest(command: str, **facts: Any) -> dict[str, Any]:
    """What a run needs to be repeated and compared: versions, hardware, peak memory, and the facts given."""
    import numba
    import scipy

    return {
        "command": command,
        "unveil": __version__,
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "hardware": {"machine": platform.machine(), "system": platform.system(), "cores": os.cpu_count()},
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        **facts,
    }


class _whole:
    """Write to a temporary neighbour, rename over the target when all went well, leave nothing otherwise."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)

    def __enter__(self) -> Any:
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}-", dir=self.path.parent)
        self.part, self.file = Path(name), os.fdopen(handle, "wb")
        return self.file

    def __exit__(self, kind: object, *_: object) -> None:
        self.file.close()
        if kind is None:
            os.chmod(self.part, 0o644)
            self.part.replace(self.path)
        else:
            self.part.unlink(missing_ok=True)
