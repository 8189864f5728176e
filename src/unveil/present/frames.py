"""Results as frames of pandas, which is not needed for anything else."""

from __future__ import annotations

from typing import Any

from unveil.checks import InputError
from unveil.present.tables import table


def to_frame(result: Any) -> Any:
    """The table of a result as a pandas DataFrame."""
    # The table first: what is no result is told so, with or without pandas.
    columns = table(result)
    try:
        import pandas
    except ImportError:
        raise InputError(
            "to_frame() needs pandas: pip install 'unveil[frames]'; save(\"….csv\") does without"
        ) from None
    return pandas.DataFrame(columns)
