"""Tables of records as numbers: CSV and Parquet files, and frames of pandas or Polars.

pandas reads the cells. What is decided here is what people otherwise decide by hand before every
audit. Where a cell is no number, the error names every such column at once, with the words that
would read it:

    numbers   as they are; true and false are 1 and 0; 1,5 is a number where commas separate nothing
    dates     days since 1970-01-01
    text      text="one-hot": a column of zeros and ones for each word; "ordinal": the words
              numbered in their order; "drop": left out. None: an error
    gaps      empty cells, NaN, infinities, and a few words in a column of numbers: missing="mean":
              the mean of the column as it is coded; "drop": the record is left out. None: an error
    nothing   a column without any cell is left out

A first column of words that are all different names the records. What was done is noted, for the
report, in `frame.attrs["notes"]`.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unveil.checks import InputError, listed
from unveil.engine.blocks import must_fit
from unveil.engine.files import must_be_file

if TYPE_CHECKING:
    import pandas

Text = Literal["one-hot", "ordinal", "drop"]
Missing = Literal["mean", "drop"]
CHOICES = {"text": ("one-hot", "ordinal", "drop"), "missing": ("mean", "drop")}
_DATES = {
    "ISO8601": "year-month-day",
    "%d.%m.%Y": "day.month.year",
    "%d/%m/%Y": "day/month/year",
    "%m/%d/%Y": "month/day/year",
}
_asked: ContextVar[Mapping[str, Any]] = ContextVar("asked")


@contextmanager
def reading(text: str | None = None, missing: str | None = None) -> Iterator[None]:
    """`text` and `missing` for every table that is read inside the block."""
    token = _asked.set({"text": text, "missing": missing})
    try:
        yield
    finally:
        _asked.reset(token)


def read_table(
    source: str | PathLike[str] | Any,
    *,
    text: Text | None = None,
    missing: Missing | None = None,
    sample: int | None = None,
    most: int | None = None,
    limit: int | None = None,
    rng: np.random.Generator | None = None,
) -> pandas.DataFrame:
    """A table as a frame of numbers, which every function of Unveil takes.

    Parameters
    ----------
    source : path or frame
        .csv, .tsv or .txt (separator and header are recognised), .parquet, or a frame.
    text : "one-hot", "ordinal", "drop" or None
        What becomes of columns of words; None: they are refused.
    missing : "mean", "drop" or None
        What becomes of gaps; None: they are refused.
    sample : int or None
        So many records, drawn uniformly in one pass by `rng`, in the order of the file.
    most, limit : int or None
        Records, and bytes of memory, that are not exceeded; None: any number, `memory_limit`.

    Returns
    -------
    pandas.DataFrame
        Numbers only, with the names of columns and records where there are any.

    Raises
    ------
    InputError
        Where cells are no numbers, or the table is too large.

    Examples
    --------
    >>> import pandas, unveil
    >>> frame = pandas.DataFrame({"city": ["Bonn", "Rome", "Bonn"], "age": [31, None, 45]})
    >>> unveil.read_table(frame, text="ordinal", missing="mean").to_numpy().tolist()
    [[0.0, 31.0], [1.0, 38.0], [0.0, 45.0]]
    """
    import pandas

    # 1. What was asked for, here or around.
    policy = {**_asked.get({}), **{k: v for k, v in (("text", text), ("missing", missing)) if v}}
    for name, choices in CHOICES.items():
        if policy.setdefault(name) not in (None, *choices):
            raise InputError(f"{name}={policy[name]!r}: choose {', '.join(map(repr, choices))}")
    # 2. The cells.
    title = "the frame"
    if isinstance(source, (str, PathLike)):
        path, title = Path(source), Path(source).name
        must_be_file(path)
        parquet = path.suffix.lower() == ".parquet"
        frame = _parquet(path, limit) if parquet else _csv(path, sample, most, limit, rng)
    elif isinstance(source, pandas.DataFrame):
        named = any(isinstance(name, str) for name in source.index)
        frame = source.copy(deep=False) if named else source.reset_index(drop=True)
    else:  # of Polars: its cells and names are all that is needed
        frame = pandas.DataFrame(np.asarray(source.to_numpy()), columns=list(source.columns))
    frame = frame.iloc[chosen_rows(len(frame), title, sample, most, rng)]
    # 3. As numbers.
    notes = list(frame.attrs.get("notes", ()))
    numbers = _as_numbers(frame, title, policy, limit, notes)
    numbers.columns = numbers.columns.map(str)
    numbers.attrs.update(notes=tuple(notes), header=frame.attrs.get("header", True))
    return numbers


def chosen_rows(
    count: int, title: str, sample: int | None, most: int | None, rng: np.random.Generator | None
) -> Any:
    """The index of a random sample of `count` records, or of all of them. More than `most` are
    refused, not cut: an audit of an unnamed part would speak for the whole."""
    if sample is not None and sample < count:
        assert rng is not None
        return np.sort(rng.choice(count, sample, replace=False))
    if most is not None and count > most:
        raise InputError(
            f"{title} has more than {most:,} records, the most that can be audited at once: audit "
            "a random part with sample="
        )
    return slice(None)


def record_names(frame: pandas.DataFrame) -> tuple[str, ...]:
    """What the records of a frame are called: by its index where that holds words."""
    return tuple(at if isinstance(at, str) else f"row {at + 1}" for at in frame.index)


def _as_numbers(
    frame: pandas.DataFrame, title: str, policy: Any, limit: int | None, notes: list[str]
) -> pandas.DataFrame:
    import pandas

    comma = frame.attrs.get("comma", False)
    # 1. A first column of words that are all different holds names.
    first = frame.iloc[:, 0]
    unique = frame.shape[1] > 1 and first.is_unique and first.notna().all()
    if unique and _values(first, comma)[0] is None:
        frame = frame.iloc[:, 1:].set_axis(first.astype(str), axis=0)
    # 2. Columns of numbers without gaps are taken together: there may be thousands.
    numeric = np.array([getattr(dtype, "kind", "O") in "biuf" for dtype in frame.dtypes])
    single = numeric.all() and all(frame.dtypes == np.float32)
    plain = frame.loc[:, numeric].to_numpy(np.float32 if single else np.float64)
    finite = (np.abs(plain) <= np.finfo(np.float32).max).all(axis=0)
    names = frame.columns[numeric][finite]
    numeric[numeric] = finite
    # 3. Each other column by itself, gaps as NaN; what is not allowed is collected.
    parts = [pandas.DataFrame(plain[:, finite], frame.index, names)]
    places = [*np.flatnonzero(numeric)]
    wrong, done = [], defaultdict(list)
    cures: set[str] = set()
    for place in np.flatnonzero(~numeric):
        name, column = frame.columns[place], frame.iloc[:, place]
        values, kind = _values(column, comma)
        gaps = (column if values is None else values).isna()
        if gaps.all():
            done["without a value, left out"].append(name)
            continue
        shown = []
        if values is None:
            kind, values = f"text, {policy['text']}", _coded(column, policy["text"], limit)
            shown += [("text", f"text{_cell(column, ~gaps)}")]
        if gaps.any():
            done[f"gaps, {policy['missing']}"].append(name)
            # A cell that is there and is no number, such as >90, says more than an empty one.
            words = gaps & column.notna()
            if words.any():
                done["cells that are no number, taken for gaps"].append(
                    f"{name} ({int(words.sum())}, as{_cell(column, words)})"
                )
            some = words if words.any() else gaps
            shown += [("missing", f"a gap{_cell(column, some)}")]
        if kind:
            done[kind].append(name)
        refused = {what: cell for what, cell in shown if policy[what] is None}
        cures.update(refused)
        wrong += [f"{name} ({', '.join(refused.values())})"] * bool(refused)
        parts.append(pandas.DataFrame(values).where(~gaps))
        places += [place] * parts[-1].shape[1]
    # 4. Refused, all of them in one sentence.
    if wrong:
        cure = " and ".join(
            f"{name}={first!r} (or {' or '.join(map(repr, others))})"
            for name, (first, *others) in CHOICES.items()
            if name in cures
        )
        raise InputError(
            f"{title}: {'columns hold' if len(wrong) > 1 else 'a column holds'} what is no number: "
            f"{listed(wrong, 20)}; read it with unveil.read_table and {cure}, or repair the file"
        )
    # 5. One table, its columns in the order of the file.
    notes += [f"{what}: {listed([str(n) for n in names], 8)}" for what, names in done.items()]
    out = pandas.concat(parts, axis=1).iloc[:, np.argsort(places, kind="stable")]
    if out.isna().any(axis=None):
        out = out.dropna() if policy["missing"] == "drop" else out.fillna(out.mean())
    if not out.size:
        raise InputError(f"{title}: nothing is left of it; keep a column of numbers, and a record")
    return out


def _values(column: pandas.Series[Any], comma: bool) -> tuple[Any, str]:
    """The numbers of a column with NaN for gaps, and what they were; None for words."""
    import pandas

    kind = getattr(column.dtype, "kind", "O")
    if kind == "m":
        return column / pandas.Timedelta(days=1), "durations, in days"
    if kind != "M":
        cells = column.astype(str).str.replace(",", ".") if comma and kind == "O" else column
        numbers = pandas.to_numeric(cells.astype(object), errors="coerce").astype(np.float64)
        # A few words among numbers are gaps; a few numbers among words are words.
        if kind in "biuf" or 2 * numbers.notna().sum() > column.notna().sum():
            return numbers.where(numbers.abs() <= np.finfo(np.float32).max), ""
    for form, words in _DATES.items():
        cells = column if kind == "M" else column.astype(object)
        dates = pandas.to_datetime(cells, format=form, errors="coerce", utc=True)
        if dates[column.notna()].notna().all():
            days = (dates - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)
            return days, f"dates ({words}), days since 1970-01-01"
    return None, ""


def _coded(words: pandas.Series[Any], text: str | None, limit: int | None) -> Any:
    import pandas

    words = words.astype("category").rename(str(words.name))
    if text == "ordinal":
        return words.cat.codes.astype(np.float64).rename(words.name)
    if text != "one-hot":
        return pandas.DataFrame(index=words.index)
    count = len(words.cat.categories)
    what = f"{count:,} different words in column {words.name}"
    must_fit(8 * count * len(words), what, limit, "use text='ordinal'")
    return pandas.get_dummies(words, prefix=words.name, prefix_sep="=").astype(np.float64)


def _cell(column: pandas.Series[Any], where: Any) -> str:
    """The first cell of some of a column, and its place."""
    row = int(np.argmax(where))
    cell, at = column.iloc[row], column.index[row]
    shown = f" {str(cell)[:30]!r}" if column.notna().iloc[row] else ""
    return f"{shown} in record {repr(at) if isinstance(at, str) else at + 1}"


def _parquet(path: Path, limit: int | None) -> pandas.DataFrame:
    import pandas

    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(f"{path.name} needs pyarrow: pip install pyarrow") from None
    about = ParquetFile(path).metadata
    must_fit(16 * about.num_rows * about.num_columns, path.name, limit, "take fewer columns")
    return pandas.read_parquet(path)


def _csv(
    path: Path,
    sample: int | None,
    most: int | None,
    limit: int | None,
    rng: Any,
    encoding: str = "utf-8-sig",
) -> pandas.DataFrame:
    """Cells by pandas, in chunks, so that a sample of a file larger than memory can be drawn."""
    import pandas

    separator, comma, header = _form(path)
    options: dict[str, Any] = {"sep": separator, "decimal": "," if comma else "."}
    options |= {"header": 0 if header else None, "index_col": False, "skipinitialspace": True}
    parts: list[pandas.DataFrame] = []
    keys = np.empty(0)
    try:
        with warnings.catch_warnings():
            # Of lines that are longer than the header pandas drops the rest, and warns.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            for chunk in pandas.read_csv(path, encoding=encoding, chunksize=10_000, **options):
                parts.append(chunk)
                n, d = sum(map(len, parts)), chunk.shape[1]
                what = f"{path.name}, {n:,} records of {d:,} values,"
                must_fit(16 * n * d, what, limit, "take a sample")
                if sample is not None:
                    # Those with the smallest of random keys: all have the same chance.
                    keys = np.concatenate([keys, rng.random(len(chunk))])
                    chosen = np.sort(np.argsort(keys)[:sample])
                    parts, keys = [pandas.concat(parts).iloc[chosen]], keys[chosen]
                elif most is not None and n > most:
                    break  # the caller counts
    except UnicodeDecodeError:
        # As spreadsheets write; it has a letter for every byte. Numbers are the same in both.
        kept = _csv(path, sample, most, limit, rng, "latin-1")
        kept.attrs["notes"] = ("letters as in Latin-1",)
        return kept
    except (pandas.errors.ParserError, pandas.errors.ParserWarning) as error:
        why = str(error).strip().rpartition("C error: ")[2].partition(". This leads")[0]
        raise InputError(f"{path.name} is no table that can be read: {why}; repair it") from None
    kept = pandas.concat(parts)
    if not len(kept):
        raise InputError(f"{path.name} has a header and no records: give one record a line")
    if not header:
        kept.columns = pandas.Index([f"column {i + 1}" for i in range(kept.shape[1])])
    kept.attrs.update(header=header, comma=comma)
    return kept


def _form(path: Path, look: int = 1 << 16, most: int = 1 << 26) -> tuple[str, bool, bool]:
    """What separates the cells of a file, whether a comma is a decimal point, and whether there is
    a header.

    look: bytes read for that, more where they hold fewer than four lines; most: bytes of four lines
    """
    with path.open("rb") as file:
        head = file.read(look)
        while head.count(b"\n") < 4 and (more := file.read(len(head))):
            head += more
            if len(head) > most:
                raise InputError(f"{path.name}: lines of {most // 4:,} bytes; one record a line")
    if not head.strip():
        raise InputError(f"{path.name} is empty: give one record a line")
    if b"\0" in head:
        raise InputError(f"{path.name} is no text: give a CSV file, or a NumPy array as .npy")
    lines = [line for line in head.decode("utf-8-sig", errors="replace").splitlines() if line]
    # The last line may be cut in the middle of a number.
    lines = (lines[:-1] if len(head) < path.stat().st_size else lines)[:50]
    tables = {separator: _split(lines, separator) for separator in ",;\t|"}

    def evenness(separator: str) -> tuple[bool, int, int]:
        width, times = Counter(map(len, tables[separator])).most_common(1)[0]
        return width > 1, times, width

    # The separator that gives most lines one width; the wider of two that are equally even.
    separator = max(tables, key=evenness)
    first, *below = tables[separator]
    number = re.compile(r"[+-]?\d+,\d+")
    comma = separator != "," and any(number.fullmatch(c.strip()) for row in below for c in row)
    # A header is words above numbers; a table of words alone is taken to have one.
    words = [i for i, cell in enumerate(first) if not _is_number(cell, comma)]
    numbers = {i for row in below for i, cell in enumerate(row) if _is_number(cell, comma)}
    header = len(words) == len(first) or not numbers.isdisjoint(words)
    return separator, comma, header


def _split(lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=True)) or [[]]
    except csv.Error:  # by the wrong separator a long line is one cell, too long
        return [[]]


def _is_number(cell: str, comma: bool) -> bool:
    try:
        return float(cell.replace(",", ".") if comma else cell) is not None
    except ValueError:
        return False
