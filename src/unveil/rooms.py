"""The older name of `unveil.shown`."""

from unveil.shown import Shown as Pictured
from unveil.shown import Shown as Shown
from unveil.shown import room as room

__all__ = ["Pictured", "Shown", "room"]
