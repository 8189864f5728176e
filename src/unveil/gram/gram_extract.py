"""GramExtract has moved to `unveil.paper`."""

from unveil.paper.gram_extract import gram_extract, overlap_engine

__all__ = ["gram_extract", "overlap_engine"]
