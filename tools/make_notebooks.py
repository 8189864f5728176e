"""Notebooks from scripts: `python -m tools.make_notebooks [--check]`, part of `make gallery`.

Every script of examples/gallery, and examples/tutorial.py, becomes a notebook of the same name in
examples/notebooks, run from top to bottom and kept with what it shows. `--check` runs them and
keeps nothing (`make notebooks`, in CI).

A script is cut into cells where it says so (`# %%` before code, `# %% [markdown]` before comments
that are text); else at blank lines between statements, its docstring the first cell. A figure is
drawn in one cell: a notebook shows what is open when a cell ends.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples" / "notebooks"
SCRIPTS = [
    *sorted((ROOT / "examples" / "gallery").glob("*.py")),
    ROOT / "examples" / "tutorial.py",
]
FOLDER = re.compile(r"^folder = Path\(sys\.argv.*$", re.M)
"""Where a script puts its picture; a notebook has no arguments."""
SECONDS = 300
"""A cell that takes longer hangs."""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

Cell = tuple[str, str]
"""("markdown" or "code", its text)."""


def cells(script: str) -> list[Cell]:
    """The cells of a script."""
    found = _marked(script) if re.search(r"^# %%", script, re.M) else _paragraphs(script)
    return [(kind, text.strip("\n")) for kind, text in found if text.strip()]


def _marked(script: str) -> list[Cell]:
    """Cells that the script marks; its docstring is text as well."""
    out: list[Cell] = []
    first, *rest = re.split(r"^# %%", script, flags=re.M)
    if ast.parse(first).body:
        out.append(("markdown", ast.get_docstring(ast.parse(first)) or ""))
    for part in rest:
        mark, _, text = part.partition("\n")
        if "[markdown]" in mark:
            out.append(("markdown", re.sub(r"^# ?", "", text, flags=re.M)))
        else:
            out.append(("code", text))
    return out


def _paragraphs(script: str) -> list[Cell]:
    """Statements with no blank line between them stay together, and so do imports, and all that is
    drawn."""
    tree, lines = ast.parse(script), script.splitlines()
    out: list[Cell] = [("markdown", ast.get_docstring(tree) or "")]
    groups: list[list[int]] = []  # first and last line of each
    importing, drawing = False, False
    for node in tree.body[1:]:
        begin, end = node.lineno, node.end_lineno or node.lineno
        while lines[begin - 2].startswith("#"):
            begin -= 1
        imports = isinstance(node, ast.Import | ast.ImportFrom)
        together = lines[begin - 2].strip() != "" or (imports and importing) or drawing
        if groups and together:
            groups[-1][1] = end
        else:
            groups.append([begin, end])
        importing = imports
        drawing = drawing or "plt.subplots" in "\n".join(lines[begin - 1 : end])
    out += [("code", "\n".join(lines[begin - 1 : end])) for begin, end in groups]
    return out


def notebook(script: Path) -> dict[str, Any]:
    """The notebook of a script, not run yet."""
    text = FOLDER.sub('folder = Path(".")', script.read_text(encoding="utf-8"))
    if "sys." not in text:
        text = text.replace("import sys\n", "")
    made = []
    for place, (kind, source) in enumerate(cells(text)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{place}",
            "metadata": {},
            "source": source.splitlines(keepends=True),
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        made.append(cell)
    metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def executed(content: dict[str, Any]) -> dict[str, Any]:
    """The same with what its cells show; raises where one of them fails."""
    import nbformat
    from nbclient import NotebookClient

    # The kernel starts in a folder of its own, and still runs the library beside this file.
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), *filter(None, paths)])
    made = nbformat.reads(json.dumps(content), as_version=4)
    with TemporaryDirectory() as place:
        options = {"timeout": SECONDS, "record_timing": False, "kernel_name": "python3"}
        NotebookClient(made, resources={"metadata": {"path": place}}, **options).execute()
    made.metadata = content["metadata"]
    return json.loads(nbformat.writes(made))


def main(arguments: list[str]) -> None:
    chosen = {name for name in arguments if not name.startswith("-")}
    for script in SCRIPTS:
        if chosen and script.stem not in chosen:
            continue
        content = executed(notebook(script))
        target = NOTEBOOKS / f"{script.stem}.ipynb"
        if "--check" not in arguments:
            NOTEBOOKS.mkdir(exist_ok=True)
            text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
            target.write_text(text, encoding="utf-8")
        print(f"runs: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
