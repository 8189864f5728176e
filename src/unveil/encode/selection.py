"""The older home of what `unveil.encode` has."""

from unveil.encode.simulate import draw_selection as draw_selection
from unveil.encode.simulate import selection_matrix as selection_matrix
