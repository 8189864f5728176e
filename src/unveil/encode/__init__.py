"""From private vectors to encodings: selection vectors, InstaHide and MixUp, and `simulate`."""

from unveil.encode.instahide import encode, mix
from unveil.encode.selection import draw_selection, selection_matrix
from unveil.encode.simulate import simulate

__all__ = ["draw_selection", "encode", "mix", "selection_matrix", "simulate"]
