"""Tables of features: read as they are, named where they have names, refused in one sentence where
they cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from unveil.checks import InputError
from unveil.data import load_vectors
from unveil.data.features import read_features


@pytest.fixture
def table() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((7, 4)).astype(np.float32) * [1, 1e-6, 1e6, 1]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_delimiter_header_and_names_are_found(
    delimiter: str, header: bool, named: bool, table, tmp_path: Path
) -> None:
    lines = [
        delimiter.join((["rec" + str(i)] if named else []) + [repr(float(v)) for v in row])
        for i, row in enumerate(table)
    ]
    if header:
        lines.insert(0, delimiter.join((["id"] if named else []) + ["a", "b", "c", "d"]))
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n\n")
    found = read_features(tmp_path / "t.csv")
    np.testing.assert_allclose(found.values, table, rtol=1e-6)
    assert found.names == tuple(f"rec{i}" if named else f"row {i + 1}" for i in range(7))
    assert found.columns == (("a", "b", "c", "d") if header else ())
    assert found.rows == 7


def test_load_vectors_reads_them_too(table, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "t.csv", table, delimiter=",")
    np.testing.assert_allclose(load_vectors(tmp_path / "t.csv"), table, rtol=1e-6)


def test_one_column_and_quotes_and_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("1.5\n2.5\n3.5\n")
    assert read_features(tmp_path / "one.csv").values.tolist() == [[1.5], [2.5], [3.5]]
    (tmp_path / "odd.csv").write_bytes('\ufeff"name, full","x"\n"a, b","1"\n"c","2"\n'.encode())
    found = read_features(tmp_path / "odd.csv")
    assert found.names == ("a, b", "c")
    assert found.values.tolist() == [[1.0], [2.0]]


BAD = {
    "empty": (b"", "is empty"),
    "header only": (b"a,b,c\n", "a header and no records"),
    "binary": (b"\x00\x01\x02" * 50, "no text"),
    "not utf-8": (b"1,2\n3,\xff\xfe4\n", "UTF-8"),
    "ragged": (b"1,2\n3,4\n5\n" + b"6,7\n" * 3, "line 3|values instead of"),
    "text inside": (b"1,2\n3,blue\n5,6\n", "blue"),
    "not a number": (
        b"a,b\n1,2\n3,nan\n",
        "line 3, b: 'nan' is NaN, .*; fill it in or remove the record$",
    ),
    "too large": (b"1,2\n3,1e300\n", "line 2, column 2: '1e300' is NaN, infinite or beyond"),
    "missing value": (b"a,b\n1,2\n3,\n", "line 3, b: '' is no number; fill it in"),
    "nan": (b"1,2\nnan,3\n", "NaN"),
    "beyond float32": (b"1,2\n1e300,3\n", "float32"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence(name: str, tmp_path: Path) -> None:
    content, words = BAD[name]
    (tmp_path / "bad.csv").write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        read_features(tmp_path / "bad.csv")
    assert "\n" not in str(caught.value)


def test_a_large_table_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.csv"
    path.write_text("1.0,2.0,3.0\n" * 200_000)
    monkeypatch.setattr("unveil.data.features._records", lambda *_: pytest.fail("read"))
    with pytest.raises(InputError, match=r"about 200,000 records, 5,000 are the most .* sample="):
        read_features(path, most=5000)
    with pytest.raises(InputError, match="memory_limit"):
        read_features(path, limit=1 << 20)


def test_a_few_too_many_are_refused_as_well(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("1,2\n" * 12)
    with pytest.raises(InputError, match="more than 10 records"):
        read_features(tmp_path / "t.csv", most=10)
    assert read_features(tmp_path / "t.csv", most=12).rows == 12


def test_a_sample_is_uniform_and_in_order(tmp_path: Path) -> None:
    """Each of 40 records is among 10 with probability 1/4: over 400 draws 100 ± 8.7, six standard
    deviations allowed."""
    (tmp_path / "t.csv").write_text("\n".join(f"{i},1" for i in range(40)))
    counts = np.zeros(40)
    for seed in range(400):
        found = read_features(
            tmp_path / "t.csv", sample=10, most=5, rng=np.random.default_rng(seed)
        )
        chosen = found.values[:, 0].astype(int)
        assert found.rows == 40
        assert (np.diff(chosen) > 0).all()
        assert found.names[0] == f"row {chosen[0] + 1}"
        counts[chosen] += 1
    assert np.abs(counts - 100).max() < 6 * 8.7


@pytest.mark.parametrize("named", [False, True])
def test_lines_longer_than_the_first_look(named: bool, tmp_path: Path) -> None:
    wide = np.random.default_rng(0).standard_normal((5, 9000)).astype(np.float32)
    lines = [
        ",".join(([f"rec{i}"] if named else []) + [f"{v:.9g}" for v in row])
        for i, row in enumerate(wide)
    ]
    lines.insert(0, ",".join((["id"] if named else []) + [f"c{i}" for i in range(9000)]))
    assert len(lines[1]) > 1 << 16
    (tmp_path / "t.csv").write_text("\n".join(lines))
    found = read_features(tmp_path / "t.csv")
    np.testing.assert_array_equal(found.values, wide)
    assert found.names[4] == ("rec4" if named else "row 5")
    assert len(found.columns) == 9000


def test_lines_and_cells_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unveil.data.features.LONGEST", 1 << 17)
    (tmp_path / "t.csv").write_text("1," * (1 << 19))
    with pytest.raises(InputError, match="line 1: longer than 131,072 characters"):
        read_features(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("1,2\n" * 40_000 + "1," * (1 << 17))
    with pytest.raises(InputError, match="line 40001: longer than"):
        read_features(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text('1,2\n"3,4\n' + "5,6\n" * 50_000)
    with pytest.raises(
        InputError, match="a cell of more than 131,072 characters; close the quotation mark"
    ):
        read_features(tmp_path / "t.csv")


def test_rows_that_grow_shorter_do_not_get_past_the_limit(tmp_path: Path) -> None:
    """The size is estimated from the first lines, and counted."""
    (tmp_path / "t.csv").write_text(
        "0.12345678901234567890,0.12345678901234567890\n" * 2000 + "1,2\n" * 30_000
    )
    with pytest.raises(
        InputError,
        match=r"would take .* MiB of memory, more than the .* take a sample, or raise memory_limit",
    ):
        read_features(tmp_path / "t.csv", limit=300_000)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(InputError, match="a named pipe"):
        read_features(tmp_path / "t.csv")
