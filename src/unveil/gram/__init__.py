"""Overlaps of encodings: Ψ and its inverse, and GramExtract in blocks."""

from unveil.gram.gram_extract import gram_extract, lattice, overlap_thresholds
from unveil.gram.psi import psi, psi_inverse

__all__ = ["gram_extract", "lattice", "overlap_thresholds", "psi", "psi_inverse"]
