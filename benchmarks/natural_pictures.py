"""Pictures of cells for docs/natural_images.md: true images above what came back, the worst first.

`python -m benchmarks.natural pictures` runs the cells of `SHOWN` once more, the first seed.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.natural import CELLS, FIRST, ROOT, measure

SHOWN = ("50-4", "50-4-labels", "25-4", "lfw", "fashion", "grey", "texture", "noise", "crops-4")
ACROSS = 16
"""Images of a row: the four worst, and others at even steps up to the best."""
WORST = 4
FOLDER = ROOT / "docs" / "figures"


def main() -> str:
    for name in SHOWN:
        measured(name)
    return "\n".join(f"docs/figures/natural-{name}.png" for name in SHOWN)


def measured(name: str) -> dict[str, Any]:
    """One cell measured on the first seed, and drawn."""
    with tempfile.TemporaryDirectory() as place:
        kept = Path(place) / "images.npz"
        result = measure(CELLS[name], FIRST, kept)
        with np.load(kept, allow_pickle=False) as file:
            draw(name, file["private"], file["found"], file["ssim"])
    return result


def draw(name: str, private: np.ndarray, found: np.ndarray, ssim: np.ndarray) -> None:
    from PIL import Image

    shape = {625: (25, 25), 784: (28, 28), 1024: (32, 32), 3072: (32, 32, 3)}[private.shape[1]]
    order = np.argsort(ssim, kind="stable")
    steps = np.linspace(WORST, len(order) - 1, ACROSS - WORST).round().astype(int)
    chosen = order[np.concatenate([np.arange(WORST), steps])]
    rows = []
    for images in (private[chosen], found[chosen]):
        tiles = np.clip((images.reshape(-1, *shape) + 1) * 127.5, 0, 255).astype(np.uint8)
        framed = np.pad(
            tiles, ((0, 0), (1, 1), (1, 1), *((0, 0),) * (tiles.ndim - 3)), constant_values=255
        )
        rows.append(np.concatenate(list(framed), axis=1))
    sheet = Image.fromarray(np.concatenate(rows))
    sheet = sheet.resize((2 * sheet.width, 2 * sheet.height), Image.Resampling.NEAREST)
    sheet.save(FOLDER / f"natural-{name}.png", optimize=True)
