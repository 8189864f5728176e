"""Overlaps of encodings: Ψ and its inverse, pair statistics, the blocked engine, GramExtract."""

from unveil.gram.engine.plan import OverlapPlan
from unveil.gram.gram_extract import gram_extract, overlap_engine, overlap_thresholds
from unveil.gram.levels import lattice
from unveil.gram.psi import psi, psi_inverse

__all__ = [
    "OverlapPlan",
    "gram_extract",
    "lattice",
    "overlap_engine",
    "overlap_thresholds",
    "psi",
    "psi_inverse",
]
