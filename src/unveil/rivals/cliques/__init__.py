"""Cliques of similar encodings, and a flow that gives each its members."""
