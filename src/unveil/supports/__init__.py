"""LearnPublic has moved to `unveil.paper`."""

from unveil.paper.learn_public import METHODS, learn_public

__all__ = ["METHODS", "learn_public"]
