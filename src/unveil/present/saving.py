"""Results as files, whole or not at all; the ending of the name says what is wanted.

.csv   the table; text that a spreadsheet would run as a formula gets a ' before it
.json  what `to_json` says
.html  an audit: the report; others: what a notebook shows
.npy   vectors of a recovery, values of encodings
.npz   a recovery with all its evidence, as `unveil attack` writes it
.png, .svg, .pdf   the picture
none   a new folder: of a recovery of images one PNG each, with the table; of a simulation a run
       directory, which `unveil attack` takes
"""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path
from typing import Any

from unveil import store
from unveil.auditing.result import Audit
from unveil.checks import InputError
from unveil.encodings import Encodings, Simulation
from unveil.present.facts import to_json
from unveil.present.notebook import html
from unveil.present.pixels import as_bytes
from unveil.present.tables import table
from unveil.records import Recovery
from unveil.report.page import write_json, write_report
from unveil.report.png import png
from unveil.rooms import Pictured

PICTURES = (".png", ".svg", ".pdf")
DOTS = 150
"""Dots per inch of a picture that is kept: sharp on paper of half the width."""


def save(result: Any, path: str | PathLike[str]) -> Path:
    """Write `result` to `path`."""
    # 1. The ending decides; a folder that is not there is told before anything is computed.
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix and not target.parent.is_dir():
        raise InputError(f"no folder {target.parent}: make it first")
    # 2. Text.
    if suffix == ".csv":
        _write_csv(target, result)
    elif suffix == ".json" and isinstance(result, Audit):
        write_json(result, target)
    elif suffix == ".json":
        store.write_text(target, to_json(result) + "\n")
    elif suffix == ".html" and isinstance(result, Audit):
        write_report(result, target)
    elif suffix == ".html":
        page = '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        store.write_text(target, f"{page}<title>Unveil</title>\n{html(result)}\n</html>\n")
    # 3. Arrays.
    elif suffix == ".npy" and isinstance(result, (Recovery, Encodings)):
        values = result.vectors if isinstance(result, Recovery) else result.values
        store.write_array(target, values)
    elif suffix == ".npz" and isinstance(result, Recovery):
        store.write_recovery(target, result)
    elif suffix in PICTURES and isinstance(result, Pictured):
        # In memory first: a drawing that fails leaves no half file.
        made = io.BytesIO()
        result.plot().savefig(made, format=suffix[1:], dpi=DOTS)
        store.write_bytes(target, made.getvalue())
    # 4. Folders.
    elif not suffix and isinstance(result, Recovery) and result.image_shape is not None:
        with store.whole_folder(target) as part:
            write_images(part, result)
            _write_csv(part / "recovered.csv", result)
    elif not suffix and isinstance(result, Simulation):
        store.write_simulation(target, result, {"simulate": store.manifest("simulate")})
    else:
        raise InputError(f"{target.name}: {_offer(result)}")
    return target


def write_images(folder: Path, recovery: Recovery) -> list[Path]:
    """A PNG for every recovered image, named by its number and status."""
    assert recovery.image_shape is not None
    pixels = as_bytes(recovery.vectors).reshape(len(recovery), *recovery.image_shape)
    if pixels.ndim == 4 and pixels.shape[3] not in (1, 3):
        raise InputError(
            f"images of {pixels.shape[3]} channels: PNG files take 1 or 3; save as .npy instead"
        )
    out = []
    for number, (image, status) in enumerate(zip(pixels, recovery.status, strict=True)):
        out.append(folder / f"recovered-{number:04d}-{status}.png")
        grey = image[..., 0] if image.ndim == 3 and image.shape[2] == 1 else image
        store.write_bytes(out[-1], png(grey))
    return out


def _write_csv(path: Path, result: Any) -> None:
    columns = table(result)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    # Without rows the header would be lost, and an empty file says nothing.
    store.write_csv(path, rows or [dict.fromkeys(columns)])


def _offer(result: Any) -> str:
    """What can be written instead."""
    kinds = [".csv", ".json", ".html"]
    if isinstance(result, (Recovery, Encodings)):
        kinds.append(".npy")
    if isinstance(result, Recovery):
        kinds.append(".npz")
    if isinstance(result, Pictured):
        kinds += PICTURES
    text = f"a {type(result).__name__} is saved as {', '.join(kinds)}"
    if isinstance(result, Recovery):
        text += "; a folder of images needs Encodings(…, image_shape=(height, width))"
    return text
