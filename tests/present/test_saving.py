"""Files by the ending of their name, whole, and harmless in a spreadsheet."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

import unveil
from unveil import store
from unveil.data.images import load_image_folder


def test_every_result_is_a_csv_a_json_and_a_page(result, tmp_path):
    for suffix in (".csv", ".json", ".html"):
        path = result.save(tmp_path / f"result{suffix}")
        assert path.stat().st_size > 0
    assert json.loads((tmp_path / "result.json").read_text())
    with (tmp_path / "result.csv").open(newline="") as file:
        assert len({len(row) for row in csv.reader(file)}) == 1


def test_formulas_are_escaped(results, tmp_path):
    text = results["audit"].save(tmp_path / "records.csv").read_text()
    assert "'=HYPERLINK(1)" in text
    named = replace(results["recovery"], columns=("=1+1", "@x", "c", "d", "e", "f"))
    header = named.save(tmp_path / "found.csv").read_text().splitlines()[0]
    assert "'=1+1" in header
    assert "'@x" in header


def test_a_recovery_without_vectors_keeps_its_header(results, tmp_path):
    empty = unveil.Recovery.empty(results["encodings"], "relations", "nothing", {})
    assert empty.save(tmp_path / "found.csv").read_text().startswith("status,encodings")


def test_arrays_come_back(results, tmp_path):
    recovery, encodings = results["recovery"], results["encodings"]
    assert np.array_equal(np.load(encodings.save(tmp_path / "y.npy")), encodings.values)
    assert np.array_equal(np.load(recovery.save(tmp_path / "x.npy")), recovery.vectors)
    back = store.read_recovery(recovery.save(tmp_path / "x.npz"))
    assert back.columns == recovery.columns == tuple("abcdef")
    assert back.status.tolist() == recovery.status.tolist()


def test_an_older_file_without_columns_is_read(results, tmp_path):
    path = replace(results["recovery"], columns=()).save(tmp_path / "x.npz")
    assert store.read_recovery(path).columns == ()


def test_pictures(results, tmp_path):
    assert results["recovery"].save(tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in results["overlaps"].save(tmp_path / "x.svg").read_text()


def test_a_folder_of_images_can_be_read_again(images, tmp_path):
    pytest.importorskip("PIL")
    folder = images.save(tmp_path / "found")
    assert len(list(folder.glob("recovered-*-verified.png"))) == int(images.verified.sum())
    (folder / "recovered.csv").unlink()
    assert load_image_folder(folder).shape == images.vectors.shape


def test_a_simulation_is_a_run_directory(results, tmp_path):
    folder = results["simulation"].save(tmp_path / "run")
    assert np.array_equal(
        store.read_encodings(folder).values, results["simulation"].encodings.values
    )


@pytest.mark.parametrize("name", ["x.xlsx", "x.npz", "folder"])
def test_other_endings_name_what_there_is(results, tmp_path, name):
    with pytest.raises(unveil.InputError, match=r"Scores is saved as \.csv, \.json"):
        results["scores"].save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(results, tmp_path):
    with pytest.raises(unveil.InputError, match="make it first"):
        results["scores"].save(tmp_path / "none" / "x.csv")
