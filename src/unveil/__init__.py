"""Unveil: what can be recovered of private data from its InstaHide encodings?

Names load when first used, so that `import unveil` stays light; `__init__.pyi` says where each of
them lives.
"""

import logging

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Silent until somebody listens: Python prints warnings of loggers without any handler.
logging.getLogger("unveil").addHandler(logging.NullHandler())
