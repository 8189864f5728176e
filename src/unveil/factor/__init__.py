"""From overlaps to subsets: the floral search of the paper, and what a floral stands for."""

from unveil.factor.floral.expectation import encodings_needed, estimate_n_private, expected_florals
from unveil.factor.floral.find_floral_submatrix import (
    find_all_florals,
    find_floral_submatrix,
    floral_labels,
    is_floral,
    iter_florals,
)
from unveil.factor.floral.reading import Reading, read_floral, swap_reading

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
