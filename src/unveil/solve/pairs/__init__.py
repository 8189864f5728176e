"""Pairs (k_private = 2) as a graph: growth from a core, and pixels by peeling along cycles."""
