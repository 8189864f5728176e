"""Pairs from the root of a line graph: overlaps of pairs are the edges of one."""
