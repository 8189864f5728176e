"""Options from a file: every one, and a right name for a wrong one."""

import os
from pathlib import Path

import pytest

from unveil.checks import InputError
from unveil.config import LARGEST, read_config

KNOWN = {
    "k_private": (int,),
    "private": (str, int),
    "m": (str, int),
    "seed": (int,),
    "out": (str,),
    "noise": (float, int),
}
KNOWN["json"] = (bool,)


def test_values_and_paths_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "data.npy").touch()
    file = tmp_path / "a.toml"
    file.write_text('k-private = 3\nm = "10:20"\nprivate = "data.npy"\nout = "runs/x"\nseed = 1\n')
    found = read_config(file, KNOWN, ("private", "out"))
    assert found == {
        "k_private": 3,
        "m": "10:20",
        "private": str(tmp_path / "data.npy"),
        "out": str(tmp_path / "runs/x"),
        "seed": 1,
    }
    file.write_text('private = "fashion-mnist"\n')
    assert read_config(file, KNOWN, ("private",)) == {"private": "fashion-mnist"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k_privat = 2", "did you mean k_private"),
        ("sed = 2", "did you mean seed"),
        ("zzz = 2", "choose from json, k_private, m, noise, out"),
        ("seed = 1\nseed = 2", "not valid TOML"),
        ("k_private = 1\nk-private = 2", "twice"),
        ("m = [1, 2]", "one value"),
        ("[audit]\nm = 1", "no option 'audit'"),
        ("m = ", "not valid TOML"),
        ("m = " + "[" * 5000 + "]" * 5000, "not valid TOML"),
        ("k_private = 2020-01-01", "k_private = 2020-01-01 must be a whole number"),
        ("k_private = 1979-05-27T07:32:00Z", "whole number"),
        ("k_private = true", "whole number"),
        ("k_private = 2.5", "whole number"),
        ("seed = nan", "whole number"),
        ("seed = 1e400", "whole number"),
        ("noise = nan", "a finite number"),
        ("noise = -inf", "a finite number"),
        ("noise = true", "a finite number"),
        ('noise = "0.1"', 'noise = "0.1" must be a finite number'),
        ("k_private = false", "k_private = false must be a whole number"),
        ("out = 5", "text in quotation marks"),
        ("out = 12:00:00", "text in quotation marks"),
        ("private = false", "text in quotation marks or a whole number"),
        ("json = 1", "true or false"),
        ('json = "yes"', "true or false"),
        ("[noise]\nx = 1", "one value"),
    ],
)
def test_mistakes_get_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_config(tmp_path / "a.toml", KNOWN)


def test_numbers_and_flags_as_they_should_be(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(
        b"\xef\xbb\xbfnoise = 1\njson = true\nm = 500\nk_private = 0x02\n"
    )
    assert read_config(tmp_path / "a.toml", KNOWN) == {
        "noise": 1,
        "json": True,
        "m": 500,
        "k_private": 2,
    }


def test_a_file_that_is_no_file_of_options(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="a named pipe"):
        read_config(tmp_path / "pipe.toml", KNOWN)
    (tmp_path / "large.toml").write_text("#" * (LARGEST + 1))
    with pytest.raises(InputError, match="1,048,577 bytes"):
        read_config(tmp_path / "large.toml", KNOWN)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="check the path"):
        read_config(tmp_path / "no.toml", KNOWN)
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_config(tmp_path / "b.toml", KNOWN)
