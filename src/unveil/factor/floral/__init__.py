"""FindFloralSubmatrix: the search, what a floral stands for, and how many to expect."""
