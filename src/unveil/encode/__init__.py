"""From private vectors to encodings: selection vectors, InstaHide and MixUp, and `simulate`."""

from unveil.encode.simulate import draw_selection, encode, mix, selection_matrix, simulate

__all__ = ["draw_selection", "encode", "mix", "selection_matrix", "simulate"]
