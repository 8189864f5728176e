"""The older name of `logging.getLogger`."""

from logging import getLogger as logger

__all__ = ["logger"]
