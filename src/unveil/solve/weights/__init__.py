"""Weights that are unequal, unknown and new in every encoding."""
