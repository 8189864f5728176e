"""The older name of `unveil.engine.blocks`."""

from unveil.engine.blocks import connected as connected
from unveil.engine.blocks import mapped_file as mapped_file
from unveil.engine.blocks import results as results
