"""The paper's solve: the sign system of one floral, and every reason to doubt its solution."""
