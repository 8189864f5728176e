"""The older names of `data.tables`, until every room uses the new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unveil.checks import as_vectors
from unveil.data.tables import SUFFIXES, read_table, record_names

__all__ = ["SUFFIXES", "Table", "column_names", "read_features"]


@dataclass(frozen=True, eq=False)
class Table:
    values: NDArray[np.float32]
    names: tuple[str, ...]
    columns: tuple[str, ...]


def read_features(path: Any, **options: Any) -> Table:
    frame = read_table(path, **options)
    columns = tuple(frame.columns) * frame.attrs["header"]
    return Table(as_vectors(frame.to_numpy(), str(path)), record_names(frame), columns)


def column_names(path: Any) -> tuple[str, ...]:
    return read_features(path).columns
