"""Frames of pandas, and the line that installs it."""

import sys

import pytest

import unveil


def test_a_frame_has_the_columns_of_the_table(result):
    pytest.importorskip("pandas")
    frame = result.to_frame()
    assert len(frame.columns) == len(set(frame.columns)) > 0


def test_values_come_back_under_their_names(results):
    pytest.importorskip("pandas")
    recovery = results["recovery"]
    frame = recovery.to_frame()
    assert (frame["status"] == "verified").sum() == recovery.verified.sum()
    assert frame[list("abcdef")].to_numpy() == pytest.approx(recovery.vectors)


def test_without_pandas_the_line_that_installs_it(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(unveil.InputError, match=r"pip install 'unveil\[frames\]'"):
        results["scores"].to_frame()
