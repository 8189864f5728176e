"""Draw every picture of the gallery again: `python -m examples.make_gallery [FOLDER]`, by default
into docs/gallery."""

import runpy
import sys
from pathlib import Path

import matplotlib

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "examples" / "gallery"


def draw(example: Path, folder: Path) -> Path:
    """Run one example as a script would, without a screen; the picture it saved."""
    import matplotlib.pyplot as plt

    before = sys.argv
    sys.argv = [str(example), str(folder)]
    try:
        runpy.run_path(str(example), run_name="__main__")
    finally:
        sys.argv = before
        plt.close("all")
    return folder / f"{example.stem}.png"


if __name__ == "__main__":
    matplotlib.use("Agg")
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(GALLERY.glob("*.py")):
        print(draw(path, target))
