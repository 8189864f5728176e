"""Tables of features from a CSV file: one record a row, read as a stream, so that a file may be
larger than memory.

The delimiter is the one of , ; tab | that splits the first lines most evenly. A first line that is
not all numbers is a header. A first column that is not all numbers holds the records' names; any
other text is an error that names its place, and every other column that has some
(`data.bad_cells`).

Without `sample` the whole table is kept, when it fits the limit: its size is estimated from the
first lines. With `sample` so many records are drawn uniformly in one pass (reservoir sampling):
memory for the sample only.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unveil.checks import InputError, as_vectors
from unveil.data.bad_cells import bad_cells, is_number
from unveil.files import must_be_file
from unveil.parallel import memory_limit, must_fit

SUFFIXES = (".csv", ".tsv", ".txt")
DELIMITERS = ",;\t|"
LOOK, LINES = 1 << 16, 4
"""Bytes from which the form of the file is read; more where they hold fewer lines: a header and
some records."""
LONGEST = 1 << 24
"""Characters of a line: a million columns. As many cells of one character take half a GiB."""


@dataclass(frozen=True, eq=False)
class Table:
    """values (n, d) as they are in the file; names of the records and of the columns; rows: how
    many records the file has."""

    values: NDArray[np.float32]
    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: int


def read_features(
    path: str | Path,
    *,
    most: int | None = None,
    limit: int | None = None,
    sample: int | None = None,
    rng: np.random.Generator | None = None,
) -> Table:
    """All records, or a uniform `sample` in the order of the file; more than `most` records or
    `limit` bytes are refused."""
    path = Path(path)
    must_be_file(path)
    # 1. Is it a table at all, and of what form?
    head = _head(path)
    if not head.strip():
        raise InputError(f"{path.name} is empty: give one record a line")
    if b"\0" in head:
        raise InputError(f"{path.name} is no text: give a CSV file, or a NumPy array as .npy")
    form = _form(path, head)
    # 2. Refused before it is read, where the first lines say that it is too large.
    limit = memory_limit(None) if limit is None else limit
    if sample is None:
        _refuse_large(path, head, form, most, limit)
    # 3. One pass over the records. With a sample, record number r takes the place of one of those
    # kept with probability sample/r, so that all have the same chance (Vitter, ACM TOMS 11, 1985,
    # algorithm R).
    kept: list[tuple[int, str, NDArray[np.float32]]] = []
    rows = 0
    for line, cells in _records(path, form):
        if len(cells) != form.width:
            raise InputError(
                f"{path.name}, line {line}: {len(cells)} values instead of {form.width}; "
                "repair or remove it"
            )
        rows += 1
        place = len(kept)
        if sample is not None and rows > sample:
            assert rng is not None
            place = int(rng.integers(rows))
            if place >= sample:
                continue
        elif sample is None and most is not None and rows > most:
            raise InputError(_too_many(path, f"more than {most:,}", most))
        parsed = _parse(cells, form, rows)
        if parsed is None:
            raise _bad(path, form, line)
        record = (rows, *parsed)
        _must_fit(path, len(kept) + 1, form, limit)
        if place < len(kept):
            kept[place] = record
        else:
            kept.append(record)
    # 4. What was kept, in the order of the file, as one array.
    if not kept:
        raise InputError(f"{path.name} has a header and no records: give one record a line")
    kept.sort(key=lambda record: record[0])
    values = as_vectors(np.stack([record[2] for record in kept]), path.name)
    return Table(values, tuple(record[1] for record in kept), form.columns, rows)


def column_names(path: str | Path) -> tuple[str, ...]:
    """What the header calls the columns, but for the one with the records' names; () without a
    header."""
    path = Path(path)
    must_be_file(path)
    return _form(path, _head(path)).columns if path.stat().st_size else ()


@dataclass(frozen=True)
class _Form:
    delimiter: str
    header: bool
    named: bool
    width: int
    columns: tuple[str, ...]


def _head(path: Path) -> bytes:
    """The first lines; the last of them may be cut."""
    with path.open("rb") as file:
        head = file.read(LOOK)
        while len(head.splitlines()) <= LINES and (more := file.read(len(head))):
            head += more
            if len(head) > LINES * LONGEST:
                raise InputError(_too_long(path, 1))
    return head


def _form(path: Path, head: bytes) -> _Form:
    # The last line of a part may be cut in the middle of a number.
    part = len(head) < path.stat().st_size
    try:
        text = head.decode("utf-8-sig", errors="ignore" if part else "strict")
    except UnicodeDecodeError:
        raise InputError(
            f"{path.name} is not UTF-8 text: save it as UTF-8, or the numbers as .npy"
        ) from None
    lines = text.splitlines()
    lines = [line for line in (lines[:-1] if part and len(lines) > 1 else lines) if line.strip()][
        :50
    ]

    def evenness(delimiter: str) -> tuple[bool, int, int]:
        try:
            width, lines_of_it = Counter(
                len(row) for row in csv.reader(lines, delimiter=delimiter)
            ).most_common(1)[0]
        except csv.Error:  # a long line is too long a cell by the wrong delimiter
            return False, 0, 0
        return width > 1, lines_of_it, width

    try:
        # The delimiter that gives most lines one width; the wider of two that are equally even.
        delimiter = max(DELIMITERS, key=evenness)
        width = evenness(delimiter)[2]
        table = list(csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise InputError(f"{path.name}: {_in_our_words(error)}") from None
    if len(table) == 1:
        # One line: a header where nothing in it is a number, else a record, perhaps with its name.
        header = not any(map(is_number, table[0]))
        named = len(table[0]) > 1 and not header and not is_number(table[0][0])
        return _Form(delimiter, header, named, width, ())
    # Names are text in every line: one number among them, and it is a column of data that needs
    # repair.
    named = len(table[0]) > 1 and not any(is_number(row[0]) for row in table[1:] if row)
    first = table[0][1:] if named else table[0]
    header = not all(map(is_number, first))
    return _Form(delimiter, header, named, width, tuple(first) if header else ())


def _records(path: Path, form: _Form) -> Iterator[tuple[int, list[str]]]:
    with path.open("rb") as raw:
        reader = csv.reader(
            _lines(path, io.TextIOWrapper(raw, "utf-8-sig", newline="")), delimiter=form.delimiter
        )
        header = form.header
        try:
            for cells in reader:
                if not any(cell.strip() for cell in cells):
                    continue
                if header:
                    header = False
                    continue
                yield reader.line_num, cells
        except UnicodeDecodeError:
            raise InputError(
                f"{path.name} is not UTF-8 text: save it as UTF-8, or the numbers as .npy"
            ) from None
        except csv.Error as error:
            raise InputError(
                f"{path.name}, line {reader.line_num}: {_in_our_words(error)}"
            ) from None


def _lines(path: Path, text: io.TextIOWrapper) -> Iterator[str]:
    number = 0
    while line := text.readline(LONGEST + 1):
        number += 1
        if len(line) > LONGEST:
            raise InputError(_too_long(path, number))
        yield line


def _too_long(path: Path, line: int) -> str:
    return (
        f"{path.name}, line {line}: longer than {LONGEST:,} characters; give one record a "
        "line, or an array as .npy"
    )


def _in_our_words(error: csv.Error) -> str:
    if "field larger" in str(error):
        return (
            f"a cell of more than {csv.field_size_limit():,} characters; close the quotation "
            "mark, or drop the column"
        )
    return f"{error}; write the file again"


def _parse(cells: list[str], form: _Form, rows: int) -> tuple[str, NDArray[np.float32]] | None:
    """The name and the numbers of a record; None where a cell is no number that float32 holds."""
    name, numbers = (cells[0], cells[1:]) if form.named else (f"row {rows}", cells)
    try:
        values = np.array(numbers, dtype=np.float64)
    except ValueError:
        return None
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return (name, single) if np.isfinite(single).all() else None


def _bad(path: Path, form: _Form, line: int) -> InputError:
    """The error for a file whose first bad cell is in this line."""
    later = (
        (number, cells[form.named :])
        for number, cells in _records(path, form)
        if number >= line and len(cells) == form.width
    )
    return bad_cells(path.name, later, partial(_column_name, form))


def _column_name(form: _Form, column: int) -> str:
    """What the header calls a column, or its number in the file from 1 on."""
    return form.columns[column] if form.columns else f"column {column + 1 + form.named}"


def _refuse_large(path: Path, head: bytes, form: _Form, most: int | None, limit: int) -> None:
    # Two digits are all that the first lines can say of the whole.
    lines = max(1, head.count(b"\n"))
    about = float(f"{path.stat().st_size / (len(head) / lines):.2g}")
    if most is not None and about > 2 * most:
        raise InputError(_too_many(path, f"about {about:,.0f}", most))
    _must_fit(path, int(about), form, limit, "about ")


def _must_fit(path: Path, records: int, form: _Form, limit: int, about: str = "") -> None:
    """The records one by one, and together."""
    what = f"{path.name}, {about}{records:,} records of {form.width:,} values,"
    must_fit(2 * 4 * records * form.width, what, limit, "take a sample")


def _too_many(path: Path, count: str, most: int) -> str:
    return (
        f"{path.name} has {count} records, {most:,} are the most that can be audited at once: "
        "audit a random part with sample="
    )
