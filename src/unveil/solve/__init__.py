"""From subsets to pixel values: the sign system of a floral, and every reason to doubt its solution."""

from unveil.solve.sign_system import SignSolution, solve_sign_system
from unveil.solve.solve_floral import FloralSolution, solve_floral

__all__ = ["FloralSolution", "SignSolution", "solve_floral", "solve_sign_system"]
