"""Every example runs, and prints or draws what the documents say."""

import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.image
import pytest
from examples.make_gallery import GALLERY, draw

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
PRINTS = {
    "own_encodings.py": ("30 of 30 vectors verified", "verified: 30", "one sign per pixel"),
    "own_report.py": ("report.html", "report.json"),
    "paper_attack.py": ("are all pairs of four vectors", "exact 4, wrong 0"),
    "public_vectors.py": ("certain and wrong: 0", "exact 30, wrong 0, missing 0, signs known"),
    "typed_use.py": ("exact 12, wrong 0, missing 0", "recovered.csv True"),
    "quickstart.py": ("40 of 40 vectors verified", "exact 40, wrong 0, missing 0"),
}
ELSEWHERE = {"make_gallery.py", "tutorial.py"}
"""Used below, and run by test_notebooks.py."""
DRAWN = sorted(GALLERY.glob("*.py"))
SLOW = {"image_audit", "leak_curve", "noise", "table_audit", "what_if"}
"""Audits and noise, half a minute and more each: run whole by `make notebooks`."""


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {*PRINTS, *ELSEWHERE}


@pytest.mark.parametrize("name", PRINTS)
def test_it_runs_and_says_so(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [text for text in PRINTS[name] if text not in done.stdout] == []


def test_the_gallery_shows_every_picture_with_its_code():
    page = (ROOT / "docs" / "gallery.md").read_text()
    assert len(DRAWN) >= 15
    for example in DRAWN:
        assert f"gallery/{example.stem}.png" in page
        assert f"../examples/gallery/{example.name}" in page
        assert f"`examples/notebooks/{example.stem}.ipynb`" in page
        assert (ROOT / "docs" / "gallery" / f"{example.stem}.png").is_file()


@pytest.mark.parametrize("example", DRAWN, ids=lambda path: path.stem)
def test_an_example_of_the_gallery_is_short(example):
    assert len(example.read_text().splitlines()) < 40


@pytest.mark.parametrize(
    "example", [path for path in DRAWN if path.stem not in SLOW], ids=lambda path: path.stem
)
def test_an_example_of_the_gallery_draws(example, tmp_path):
    matplotlib.use("Agg")
    picture = matplotlib.image.imread(draw(example, tmp_path))
    assert picture.shape[1] > 600
    assert picture[..., :3].std() > 0.05, "an empty picture"
    assert [path.name for path in tmp_path.iterdir()] == [f"{example.stem}.png"]
