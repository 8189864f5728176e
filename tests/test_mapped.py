"""Memory-mapped arrays: who owns the numbers, and pages that are given back."""

import re
from pathlib import Path

import numpy as np
import pytest

from unveil import mapped
from unveil.mapped import let_go, mapping_of


@pytest.fixture
def file(tmp_path, monkeypatch):
    """32 MiB, and every file counts as large."""
    monkeypatch.setattr(mapped, "LARGE", 1)
    np.save(tmp_path / "values.npy", np.arange(1 << 23, dtype=np.float32).reshape(1024, -1))
    return tmp_path / "values.npy"


def resident():
    """Bytes of files that this process has mapped."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not say what is mapped")
    return 1024 * int(re.search(r"RssFile:\s+(\d+)", status.read_text()).group(1))


def test_views_and_slices_lead_to_the_mapped_array_and_copies_to_none(file):
    values = np.load(file, mmap_mode="r")
    for view in (values, np.asarray(values), np.asarray(values)[3:5], values[:, 2]):
        assert np.shares_memory(mapping_of(view), values)
    assert mapping_of(values + 0) is None or mapping_of(values + 0).mode is None
    assert mapping_of(np.ones(3)) is None


def test_pages_that_were_read_are_given_back_and_read_again_the_same(file):
    values = np.asarray(np.load(file, mmap_mode="r"))
    before = resident()
    total = values.sum(dtype=np.float64)
    assert resident() - before > 24 << 20
    let_go(values)
    assert resident() - before < 8 << 20
    assert values.sum(dtype=np.float64) == total


def test_changes_to_a_private_copy_and_plain_arrays_stay(file):
    values = np.load(file, mmap_mode="c")
    values[5, 5] = -1
    let_go(values)
    assert values[5, 5] == -1
    plain = np.ones(1000)
    let_go(plain)
    assert plain.all()
    let_go(np.load(file, mmap_mode="r") + 1)  # a result of arithmetic has no file
