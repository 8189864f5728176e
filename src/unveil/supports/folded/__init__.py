"""LearnPublic by search in the folded-normal likelihood: the default."""
