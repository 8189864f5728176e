"""Published methods for the same question, plainly in NumPy: one file each, one function each.

    support(y, public, k, ...) -> indices (m, k), sorted in each row

y (m, d) are magnitudes, public (n_public, d). Every step treats all encodings at once, so the cost
is that of matrix products with `public`; nothing of size n_public×n_public is formed.
"""
