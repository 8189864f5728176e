"""Holding recovered vectors against the truth."""

from unveil.scoring.score import score

__all__ = ["score"]
