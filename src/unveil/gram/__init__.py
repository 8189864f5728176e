"""Similarities that attacks outside the paper use; GramExtract is in `unveil.paper`."""

from unveil.paper.gram_extract import gram_extract, overlap_engine, psi, psi_inverse
from unveil.paper.overlap_levels import lattice

__all__ = ["gram_extract", "lattice", "overlap_engine", "psi", "psi_inverse"]
