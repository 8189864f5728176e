"""Notebooks are their scripts, cell by cell; the tutorial prints what its page says."""

import json
import re

import matplotlib
import pytest
from tools.make_notebooks import NOTEBOOKS, SCRIPTS, cells, executed, notebook
from tools.make_tutorial import PAGE, page

STEPS = '''"""A title."""

import sys
from pathlib import Path

import unveil

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
# Two numbers.
a = 1

b = 2


def f():

    return a


figure = plt.subplots()

figure.savefig(folder / "x.png")
'''


def sources(content):
    return [(cell["cell_type"], "".join(cell["source"])) for cell in content["cells"]]


def test_a_script_is_cut_at_blank_lines_and_a_figure_stays_whole(tmp_path):
    script = tmp_path / "x.py"
    script.write_text(STEPS)
    made = sources(notebook(script))
    assert made[0] == ("markdown", "A title.")
    assert [text for _, text in made[1:]] == [
        "from pathlib import Path\n\nimport unveil",
        'folder = Path(".")\n# Two numbers.\na = 1',
        "b = 2",
        "def f():\n\n    return a",
        'figure = plt.subplots()\n\nfigure.savefig(folder / "x.png")',
    ]


def test_marks_cut_a_script_too():
    text = '"""# Title"""\n\n# %% [markdown]\n# Some *text*.\n\n# %%\nx = 1\n\ny = 2\n'
    expected = [("markdown", "# Title"), ("markdown", "Some *text*."), ("code", "x = 1\n\ny = 2")]
    assert cells(text) == expected


def test_every_script_has_a_notebook():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == {path.stem for path in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_notebook_is_that_of_its_script_and_was_run(script):
    kept = json.loads((NOTEBOOKS / f"{script.stem}.ipynb").read_text())
    assert sources(kept) == sources(notebook(script)), "stale: run `make gallery`"
    shown = [output for cell in kept["cells"] for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in shown)
    assert not any(output["output_type"] == "error" for output in shown)


def test_a_notebook_runs_and_shows_results_as_html(monkeypatch):
    pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", "")
    code = "import numpy as np, unveil\nunveil.Encodings(np.eye(3), unveil.Scheme(2))"
    cell = {"cell_type": "code", "id": "a", "metadata": {}, "source": [code]}
    cell |= {"execution_count": None, "outputs": []}
    content = {"cells": [cell], "nbformat": 4, "nbformat_minor": 5}
    content["metadata"] = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    (output,) = executed(content)["cells"][0]["outputs"]
    assert "3 encodings of 3 values" in "".join(output["data"]["text/html"])


def test_the_tutorial_prints_what_its_page_says(tmp_path):
    matplotlib.use("Agg")
    text = page(tmp_path)
    assert text == PAGE.read_text(), "stale: run `make gallery`"
    pictures = re.findall(r"\]\(tutorial/(\S+)\)", text)
    assert pictures == [path.name for path in sorted(tmp_path.iterdir())]
