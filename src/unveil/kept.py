"""The older name of `unveil.engine.files`."""

from unveil.engine.files import keep_arrays as keep_arrays
from unveil.engine.files import keep_json as keep_json
from unveil.engine.files import kept_arrays as kept_arrays
from unveil.engine.files import kept_json as kept_json
from unveil.engine.files import name_of as name_of
