"""A table with several bad columns is refused once, with all of them named."""

from pathlib import Path

import pytest

from unveil.checks import InputError
from unveil.data.features import read_features


def test_all_bad_columns_are_named_at_once_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("id,age,city,income,born\nx,31,Rome,,1990-01-02\ny,40,Oslo,5,1980-03-04\n")
    with pytest.raises(InputError) as caught:
        read_features(path)
    text = str(caught.value)
    assert "3 columns" in text
    assert "city (line 2: 'Rome'), income (line 2: ''), born (line 2: '1990-01-02')" in text
    assert "turn them into numbers or drop the columns; fill gaps in or remove the records" in text
    # A later line shows another column; of very many a few are named.
    path.write_text("a,b\n1,2\n3,x\n5,nan\ny,6\n")
    with pytest.raises(InputError, match=r"2 columns .*a \(line 5: 'y'\), b \(line 3: 'x'\);"):
        read_features(path)
    path.write_text(",".join("abcdefgh") + "\n" + "1,2,3,4,5,6,7,8\n" + ",".join("1ooooooo") + "\n")
    with pytest.raises(InputError, match=r"7 columns .*f \(line 3: 'o'\) and 2 more; turn"):
        read_features(path)
