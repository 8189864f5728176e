"""Every benchmark can be imported, and `make bench` names those that have a table."""

from importlib import import_module
from pathlib import Path

import pytest
from benchmarks.run import TABLES

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
NAMES = [path.stem for path in sorted(FOLDER.glob("*.py")) if path.stem != "__init__"]


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_imported(name):
    module = import_module(f"benchmarks.{name}")
    assert name not in TABLES or callable(module.rows)


def test_every_table_is_there():
    assert set(TABLES) <= set(NAMES)


def test_every_stage_of_natural_images_that_is_switched_off_is_a_setting():
    from benchmarks.images import OFF

    from unveil.images.rounds import Schedule

    whole = Schedule(**OFF["all stages"])
    assert all(Schedule(**off) != whole for name, off in OFF.items() if name != "all stages")
