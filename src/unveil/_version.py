__version__ = "1.0.0"
SCHEMA = 2
"""Version of what --json prints and of audit.json; it grows when a field changes its meaning or
goes away. Fields may be added meanwhile."""
