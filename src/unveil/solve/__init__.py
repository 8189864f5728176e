"""From subsets to pixel values: the sign system of a floral, and every reason to doubt its
solution."""

from unveil.solve.floral.sign_system import SignSolution, solve_sign_system
from unveil.solve.floral.solve_floral import FloralSolution, solve_floral

__all__ = ["FloralSolution", "SignSolution", "solve_floral", "solve_sign_system"]
