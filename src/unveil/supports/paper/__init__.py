"""LearnPublic as printed: the moment matrix, the semidefinite program, diagonal thresholding."""
