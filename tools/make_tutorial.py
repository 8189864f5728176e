"""The tutorial as a page: `python -m tools.make_tutorial`, part of `make gallery`.

Runs the cells of examples/tutorial.py one after the other, puts what they print below them, and
writes docs/tutorial.md with its pictures in docs/tutorial. A test makes the page again and compares
the text, so that no number in it can be stale.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import matplotlib
from tools.make_notebooks import ROOT, cells

SOURCE = ROOT / "examples" / "tutorial.py"
PAGE, PICTURES = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "tutorial"
DOTS = 110
"""Per inch, as in the gallery."""


def page(folder: Path) -> str:
    """The page as text; its pictures go to `folder`."""
    import matplotlib.pyplot as plt

    out, names = [], {"__name__": "__main__"}
    drawn = 0
    for kind, text in cells(SOURCE.read_text(encoding="utf-8")):
        if kind == "markdown":
            out.append(text)
            continue
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(text, str(SOURCE), "exec"), names)
        out.append(f"```python\n{text}\n```")
        if said.getvalue():
            lines = [line.rstrip() for line in said.getvalue().rstrip().splitlines()]
            out.append("\n".join(f"    {line}".rstrip() for line in lines))
        for number in plt.get_fignums():
            figure = plt.figure(number)
            drawn += 1
            titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
            figure.savefig(folder / f"{drawn}.png", dpi=DOTS)
            out.append(f"![{'; '.join(titles)}](tutorial/{drawn}.png)")
        plt.close("all")
    return "\n\n".join(out) + "\n"


if __name__ == "__main__":
    matplotlib.use("Agg")
    PICTURES.mkdir(exist_ok=True)
    PAGE.write_text(page(PICTURES), encoding="utf-8")
    print(PAGE.relative_to(ROOT), file=sys.stderr)
