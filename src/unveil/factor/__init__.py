"""From overlaps to subsets; the floral search of the paper is in `unveil.paper`."""

from unveil.paper.floral import (
    Reading,
    encodings_needed,
    estimate_n_private,
    expected_florals,
    find_all_florals,
    find_floral_submatrix,
    floral_labels,
    is_floral,
    iter_florals,
    read_floral,
    swap_reading,
)

__all__ = [
    "Reading",
    "encodings_needed",
    "estimate_n_private",
    "expected_florals",
    "find_all_florals",
    "find_floral_submatrix",
    "floral_labels",
    "is_floral",
    "iter_florals",
    "read_floral",
    "swap_reading",
]
