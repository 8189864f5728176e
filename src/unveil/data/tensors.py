"""The older home of `read_any_array`, until every room uses the new one."""

from unveil.data.arrays import read_any_array

__all__ = ["read_any_array"]
