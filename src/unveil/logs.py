"""Loggers of the library: what is done, for those who ask; silent for everybody else.

    import logging
    logging.basicConfig(level=logging.INFO)

shows what each attack ended with, and the steps of an audit.
"""

from __future__ import annotations

import logging


def logger(name: str) -> logging.Logger:
    """The logger of a module. Without a handler of the user's own nothing reaches the terminal."""
    above = logging.getLogger("unveil")
    # Python prints warnings of loggers without any handler; a library must not.
    if not above.handlers:
        above.addHandler(logging.NullHandler())
    return logging.getLogger(name)
