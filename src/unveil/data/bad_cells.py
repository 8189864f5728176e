"""Cells of a table that are no numbers: every column that has one is named at once, so that a file
is repaired once and not column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from unveil.checks import InputError, listed

LOOKED = 1000
"""Records that are looked through for further bad columns: a column of text shows in the first."""
SHOWN = 30
"""Characters of a cell that are quoted."""


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def bad_cells(
    name: str, records: Iterable[tuple[int, list[str]]], column_name: Callable[[int], str]
) -> InputError:
    """The error for a file of this name: the first bad cell of every column, with the cure.

    records: line and cells of the first that is bad and of those after it
    """
    # 1. The first bad cell of each column, by its place.
    found: dict[int, tuple[int, str]] = {}
    for seen, (line, cells) in enumerate(records):
        if seen == LOOKED:
            break
        for column, cell in enumerate(cells):
            if column not in found and not (is_number(cell) and np.isfinite(_single(cell))):
                found[column] = line, cell
    # 2. What is wrong with them decides the cure.
    texts = [cell for _, cell in found.values()]
    filled = any(not cell.strip() or is_number(cell) for cell in texts)
    turned = any(cell.strip() and not is_number(cell) for cell in texts)
    several = len(found) > 1
    cures = [f"turn {'them' if several else 'it'} into numbers or drop the column"] * turned
    cures += [f"fill {'gaps' if several else 'it'} in or remove the record"] * filled
    cure = "; ".join(f"{text}s" if several else text for text in cures)
    # 3. One sentence, however many there are.
    if several:
        places = [
            f"{column_name(i)} (line {line}: {cell[:SHOWN]!r})"
            for i, (line, cell) in sorted(found.items())
        ]
        return InputError(
            f"{name}: {len(found)} columns hold what is no number, or none in the range of "
            f"float32: {listed(places)}; {cure}"
        )
    column, (line, cell) = next(iter(found.items()))
    what = "is NaN, infinite or beyond float32" if is_number(cell) else "is no number"
    return InputError(
        f"{name}, line {line}, {column_name(column)}: {cell[:SHOWN]!r} {what}; {cure}"
    )


def _single(cell: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(cell))
