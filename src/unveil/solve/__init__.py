"""From subsets to pixel values, and every reason to doubt a solution."""
