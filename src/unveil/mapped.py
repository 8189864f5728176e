"""The older name of `unveil.checks`."""

from unveil.checks import let_go as let_go
from unveil.checks import mapping_of as mapping_of
