"""Tables: separators, headers and names found out; words, dates and gaps coded or refused, all in
one sentence."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import unveil
from unveil.data import load_dataset, load_vectors, read_table
from unveil.data.tables import reading, record_names

MESSY = """id;city;born;pay;size;smoker;
ann;Bonn;1990-01-02;1,5;3;yes;
bob;Rome;1980-05-06;;4;no;
cid;Bonn;;2,5;unknown;yes;
dan;Rome;1970-01-11;7,25;4;;
"""


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "t.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_separator_header_and_names_are_found(separator, header, named, write):
    table = np.random.default_rng(0).standard_normal((7, 4)) * [1, 1e-6, 1e6, 1]
    lines = [
        separator.join([f"rec{i}"] * named + [repr(float(v)) for v in row])
        for i, row in enumerate(table)
    ]
    if header:
        lines.insert(0, separator.join(["id"] * named + ["a", "b", "c", "d"]))
    frame = read_table(write("\ufeff" + "\n".join(lines) + "\n\n"))
    np.testing.assert_array_equal(frame.to_numpy(), table)
    assert record_names(frame) == tuple(f"rec{i}" if named else f"row {i + 1}" for i in range(7))
    assert frame.attrs["header"] == header
    assert not header or list(frame.columns) == ["a", "b", "c", "d"]


def test_one_sentence_names_every_column_and_the_words_that_read_it(write):
    with pytest.raises(unveil.InputError) as error:
        load_dataset(write(MESSY), rng=np.random.default_rng(0))
    text = str(error.value)
    for words in (
        "city (text 'Bonn' in record 'ann')",
        "born (a gap in record 'cid')",
        "pay (a gap in record 'bob')",
        "size (a gap 'unknown' in record 'cid')",
        "smoker (text 'yes' in record 'ann', a gap in record 'dan')",
        "text='one-hot'",
        "missing='mean'",
    ):
        assert words in text
    assert "\n" not in text


def test_a_cell_that_is_no_number_is_shown_before_an_empty_one(write):
    path = write("age,size\n1,\n2,5\n>90,6\n4,7\n")
    with pytest.raises(unveil.InputError, match="a gap '>90' in record 3"):
        read_table(path)
    notes = read_table(path, missing="mean").attrs["notes"]
    assert any("taken for gaps: age (1, as '>90' in record 3)" in note for note in notes)


def test_words_dates_and_gaps_as_numbers(write):
    frame = read_table(write(MESSY), text="one-hot", missing="mean")
    assert list(frame.columns) == [
        "city=Bonn",
        "city=Rome",
        "born",
        "pay",
        "size",
        "smoker=no",
        "smoker=yes",
    ]
    assert frame.loc["dan"].tolist() == pytest.approx([0, 1, 10, 7.25, 4, 1 / 3, 2 / 3])
    assert frame.loc["bob", "pay"] == pytest.approx((1.5 + 2.5 + 7.25) / 3)
    assert read_table(write(MESSY), text="ordinal", missing="drop").loc["ann"].tolist() == [
        0,
        7306,
        1.5,
        3,
        1,
    ]
    assert list(read_table(write(MESSY), text="drop", missing="mean")) == ["born", "pay", "size"]
    with reading("one-hot", "mean"):
        data = load_dataset(write(MESSY), rng=np.random.default_rng(0))
    assert data.columns == tuple(frame.columns)
    assert data.names == ("ann", "bob", "cid", "dan")
    said = data.facts()["encoded as"]
    assert "text, one-hot: city, smoker" in said
    assert "dates (year-month-day), days since 1970-01-01: born" in said
    assert "no number, taken for gaps: size (1, as 'unknown' in record 'cid')" in said
    np.testing.assert_allclose(data.restore(data.values), frame, atol=1e-3)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"])
def test_dates_of_every_form_are_the_same_days(form, write):
    days = pandas.date_range("2020-01-25", periods=6)
    frame = read_table(write("\n".join(["x,day", *(f"1.5,{day:{form}}" for day in days)])))
    assert frame["day"].tolist() == [18286 + i for i in range(6)]


def test_frames_keep_names_and_are_not_changed():
    frame = pandas.DataFrame(
        {"a": [1, 2], "b": [True, False], "c": pandas.to_datetime(["1970-01-02", "1970-01-04"])},
        index=["x", "y"],
    )
    before = frame.copy()
    numbers = read_table(frame)
    assert numbers.to_numpy().tolist() == [[1, 1, 1], [2, 0, 3]]
    pandas.testing.assert_frame_equal(frame, before)
    encodings = unveil.Encodings(numbers, unveil.Scheme(2), None)
    assert encodings.columns == ("a", "b", "c")
    words = pandas.DataFrame({"a": [1.0, 2.0], "b": pandas.Categorical(["u", "v"])})
    with pytest.raises(unveil.InputError, match=r"b \(text 'u' in record 1\)"):
        unveil.Encodings(words, unveil.Scheme(2))
    assert read_table(words, text="one-hot").to_numpy().tolist() == [[1, 1, 0], [2, 0, 1]]


def test_letters_of_spreadsheets_are_read(write):
    """A semicolon, a decimal comma and Latin-1 are what a spreadsheet writes in much of Europe."""
    frame = read_table(write("Größe;Alter\n1,5;30\n1,25;41\n".encode("latin-1")))
    assert frame.columns.tolist() == ["Größe", "Alter"]
    assert frame.to_numpy().tolist() == [[1.5, 30], [1.25, 41]]
    assert frame.attrs["notes"] == ("letters as in Latin-1",)


BAD = {
    "empty": (b"", "is empty"),
    "header only": (b"a,b,c\n", "a header and no records"),
    "binary": (b"\x00\x01\x02" * 50, "no text"),
    "not utf-8": (b"1,2\n3,\xff\xfe4\n5,6\n7,8\n", r"column 2 \(a gap 'ÿþ4' in record 2\)"),
    "ragged": (b"1,2\n3,4\n5,6,7\n" + b"6,7\n" * 3, "2 fields in line 3, saw 3; repair it"),
    "wider than its header": (b"a,b\n1,2,3\n4,5,6\n", "header .* does not match length of data"),
    "short": (b"1,2\n3\n4,5\n6,7\n", r"column 2 \(a gap in record 2\)"),
    "text": (b"1,2\n3,blue\n5,6\n7,8\n", r"column 2 \(a gap 'blue' in record 2\)"),
    "nan": (b"a,b\n1,2\n3,nan\n", "b .a gap in record 2"),
    "beyond": (b"1,2\n3,1e300\n", "column 2 .a gap '1e.?300' in record 2"),
    "quote": (b'1,2\n"3,4\n5,6\n', "EOF inside string|no number"),
    "nothing": (b"a,b\n,\n,\n", "nothing is left"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_get_one_sentence(name, write):
    content, words = BAD[name]
    with pytest.raises(unveil.InputError, match=words) as error:
        read_table(write(content))
    assert "\n" not in str(error.value)
    with pytest.raises(unveil.InputError, match="choose 'mean', 'drop'"):
        read_table(write("1,2\n"), missing="guess")


def test_large_tables_are_refused_and_sampled(write):
    path = write("1.0,2.0,3.0\n" * 200_000)
    with pytest.raises(unveil.InputError, match=r"more than 5,000 records, .* sample="):
        read_table(path, most=5000)
    with pytest.raises(unveil.InputError, match="take a sample, or raise memory_limit"):
        read_table(path, limit=1 << 20)
    sample = read_table(path, sample=7, most=5000, limit=1 << 20, rng=np.random.default_rng(0))
    assert len(sample) == 7
    with pytest.raises(unveil.InputError, match="more than 10 records"):
        read_table(write("1,2\n" * 12), most=10)


def test_a_sample_is_uniform_and_in_order(write):
    """Each of 40 records is among 10 with probability 1/4: over 100 draws 25 ± 4.3, six standard
    deviations allowed."""
    path = write("\n".join(f"{i},1" for i in range(40)))
    counts = np.zeros(40)
    for seed in range(100):
        frame = read_table(path, sample=10, rng=np.random.default_rng(seed))
        chosen = frame.iloc[:, 0].astype(int).to_numpy()
        assert (np.diff(chosen) > 0).all()
        assert record_names(frame)[0] == f"row {chosen[0] + 1}"
        counts[chosen] += 1
    assert np.abs(counts - 25).max() < 6 * 4.4


def test_lines_longer_than_the_first_look(write):
    wide = np.random.default_rng(0).standard_normal((5, 4000))
    lines = [",".join(["id", *(f"c{i}" for i in range(4000))])]
    lines += [",".join([f"rec{i}", *map(repr, row.tolist())]) for i, row in enumerate(wide)]
    assert min(map(len, lines[1:])) > 1 << 16
    path = write("\n".join(lines))
    assert record_names(read_table(path))[4] == "rec4"
    np.testing.assert_array_equal(load_vectors(path), wide.astype(np.float32))


def test_parquet_without_pyarrow_names_what_to_install(tmp_path):
    frame = pandas.DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
    try:
        frame.to_parquet(tmp_path / "t.parquet")
    except ImportError:
        (tmp_path / "t.parquet").write_bytes(b"PAR1")
        with pytest.raises(unveil.InputError, match="pip install pyarrow"):
            read_table(tmp_path / "t.parquet")
        return
    assert read_table(tmp_path / "t.parquet", text="ordinal").to_numpy().tolist() == [
        [1.5, 0],
        [2.5, 1],
    ]
