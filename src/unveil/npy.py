"""The older name of `unveil.engine.files`."""

from unveil.engine.files import array_names as array_names
from unveil.engine.files import must_fit_as_vectors as must_fit_as_vectors
from unveil.engine.files import read_array as read_array
from unveil.engine.files import write_array as write_array
from unveil.engine.files import write_arrays as write_arrays
