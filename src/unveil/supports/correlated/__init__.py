"""LearnPublic where pixels are not independent Gaussian: the law of the public vectors is measured
first."""
