"""Every result is a table whose columns have one length, and whose names are different."""

from dataclasses import replace

import numpy as np
import pytest

from unveil.present.tables import table


def test_columns_are_equally_long(result):
    columns = table(result)
    assert columns
    assert len({len(values) for values in columns.values()}) == 1


def test_a_recovery_keeps_the_names_of_its_columns(results):
    recovery = results["recovery"]
    columns = table(recovery)
    assert list(columns) == ["status", "encodings", "residual", "reason", *"abcdef"]
    assert np.allclose(columns["c"], recovery.vectors[:, 2])
    assert columns["encodings"][0] == int(recovery.members[:, [0]].sum())


def test_a_column_with_a_taken_name_stays(results):
    names = ("status", "x", "x", "d", "e", "f")
    columns = table(replace(results["recovery"], columns=names))
    assert list(columns)[4:] == ["status (1)", "x", "x (3)", "d", "e", "f"]


def test_open_values_are_no_numbers(results):
    recovery = results["recovery"]
    doubtful = np.zeros(recovery.vectors.shape, bool)
    doubtful[1, 2] = True
    columns = table(replace(recovery, doubtful=doubtful))
    assert np.flatnonzero(np.isnan(columns["c"])).tolist() == [1]
    assert not np.isnan(columns["b"]).any()


def test_overlaps_list_every_pair_once(results):
    columns = table(results["overlaps"])
    M = results["overlaps"].toarray()
    assert sum(columns["shared"]) == np.triu(M, 1).sum()
    assert all(i < j for i, j in zip(columns["encoding"], columns["other"], strict=True))


def test_other_things_are_no_results():
    with pytest.raises(TypeError, match="int"):
        table(3)
