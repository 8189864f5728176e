"""The older home of `read_labels`, until every room uses the new one."""

from unveil.data.arrays import read_labels

__all__ = ["read_labels"]
