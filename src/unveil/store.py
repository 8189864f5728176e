"""The older name of `unveil.engine.files` and `unveil.engine.runs`."""

from unveil.engine.files import must_be_new as must_be_new
from unveil.engine.files import read_array as read_array
from unveil.engine.files import read_json as read_json
from unveil.engine.files import whole_folder as whole_folder
from unveil.engine.files import whole_set as whole_set
from unveil.engine.files import write_array as write_array
from unveil.engine.files import write_arrays as write_arrays
from unveil.engine.files import write_bytes as write_bytes
from unveil.engine.files import write_csv as write_csv
from unveil.engine.files import write_json as write_json
from unveil.engine.files import write_text as write_text
from unveil.engine.runs import manifest as manifest
from unveil.engine.runs import read_encodings as read_encodings
from unveil.engine.runs import read_recovery as read_recovery
from unveil.engine.runs import read_scheme as read_scheme
from unveil.engine.runs import read_truth as read_truth
from unveil.engine.runs import write_recovery as write_recovery
from unveil.engine.runs import write_scheme as write_scheme
from unveil.engine.runs import write_simulation as write_simulation
