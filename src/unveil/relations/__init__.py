"""Exact relations among encodings: four of them whose sum vanishes for some signs, at every pixel,
whatever the data are."""
