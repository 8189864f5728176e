"""Photograph the report with chromium: `python -m tools.make_screenshots [FOLDER]`, part of
`make gallery`.

One small audit with a fixed seed, its report as a desktop and as a phone show it: report.png and
report-phone.png, by default in docs/images.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import unveil

ROOT = Path(__file__).resolve().parents[1]
SIZES = {"report.png": (1280, 900), "report-phone.png": (390, 844)}
"""Width and height in pixels: a laptop's window, and a phone."""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")


def photograph(page: Path, target: Path, size: tuple[int, int]) -> Path:
    """A picture of the upper part of a page, as a window of this size shows it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("screenshots need chromium: apt-get install chromium")
    with TemporaryDirectory() as profile:
        place = f"--user-data-dir={profile}", f"--screenshot={target}"
        window = f"--window-size={size[0]},{size[1]}", "--hide-scrollbars"
        command = [browser, *FLAGS, *place, *window, page.resolve().as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return target


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    audit = unveil.audit("fashion-mnist", sample=30, rng=0)
    with TemporaryDirectory() as place:
        report = audit.save(Path(place) / "report.html")
        for name, size in SIZES.items():
            print(photograph(report, folder / name, size))
