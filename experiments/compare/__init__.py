"""Every attack on the same instances: which wins, where, at what cost."""
