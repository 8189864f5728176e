"""Settings of the documentation, built by `make docs` without the network."""

import re

from unveil import __version__

project = "Unveil"
author = "the Unveil authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "Unveil"
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "DataLike", "Progress", "Rng", "Weighting", "Signs")
}
python_maximum_signature_line_length = 90


ENTRIES = ("Parameters", "Attributes", "Returns", "Raises")
"""Sections whose entries are a term and, indented, what it means."""


def plain_docstring(_app, _what, _name, _object, _options, lines):
    """Docstrings here are plain text, not reStructuredText: |y| is a modulus, columns are lined up
    by hand.

    A paragraph flows; one with columns or indentation keeps its lines. `name` is code. Sections of
    numpydoc (a heading underlined with dashes) become headings; parameters and fields a list of
    definitions; examples stay as they are.
    """
    text = re.sub(r"^(\w[\w ]*)\n-{3,}$", "\n\x00\\1\n", "\n".join(lines).strip("\n"), flags=re.M)
    lines[:] = []
    section = ""
    for paragraph in filter(str.strip, re.split(r"\n\s*\n", text)):
        rows = paragraph.strip("\n").split("\n")
        if rows[0].startswith("\x00"):
            section = rows.pop(0)[1:]
            lines += [f".. rubric:: {section}", ""]
        if rows and rows[0].startswith(">>>"):
            lines += [*rows, ""]
            continue
        rows = [re.sub(r"([\\|*_])", r"\\\1", row) for row in rows]
        rows = [
            re.sub(r"`([^`]+)`", lambda code: "``" + code[1].replace("\\", "") + "``", row)
            for row in rows
        ]
        columns = section not in ENTRIES and any(
            row.startswith(" ") or re.search(r"\S {2,}\S", row) for row in rows
        )
        lines += [("| " if columns and row.strip() else "") + row for row in rows] + [""]


def setup(app):
    app.connect("autodoc-process-docstring", plain_docstring)
