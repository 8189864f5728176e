"""Which public vectors does an encoding use? LearnPublic (`alg:public_attack`) and its practical
variants."""

from unveil.supports.learn_public import METHODS, learn_public
from unveil.supports.paper.moment import moment_matrix
from unveil.supports.paper.sdp import solve_sdp

__all__ = ["METHODS", "learn_public", "moment_matrix", "solve_sdp"]
