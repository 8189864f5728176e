"""LearnPublic where weights are unknown, or where there is no private part."""
