"""The older name of `unveil.engine.files`."""

from unveil.engine.files import PART as PART
from unveil.engine.files import alone as alone
from unveil.engine.files import must_be_file as must_be_file
from unveil.engine.files import must_be_new as must_be_new
from unveil.engine.files import whole as whole
from unveil.engine.files import whole_folder as whole_folder
from unveil.engine.files import whole_set as whole_set
