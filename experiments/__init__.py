"""What the paper reports, measured again: `reproduce` runs one item or all, draws, and says where
we agree and where not.

One module measures an item, as cells that survive an interruption; figures, rows and words are made
from its numbers alone.
"""

from unveil.experiments.paper.reproduce import ITEMS, Result, reproduce

__all__ = ["ITEMS", "Result", "reproduce"]
