"""The paper's four algorithms, each as printed and at full speed.

    Algorithm 1  LearnPublic         `learn_public`, `folded_search`, `unknown_weights`, `tree_law`
    Algorithm 2  GramExtract         `gram_extract`, `overlap_engine`
    Algorithm 3  FindFloralSubmatrix `floral`
    Algorithm 4  LearnPrivateImage   `private_image`

docs/paper_map.md goes from every label of the paper to its function and test.
"""

from unveil.paper.floral import find_all_florals, find_floral_submatrix, is_floral
from unveil.paper.gram_extract import gram_extract, psi, psi_inverse
from unveil.paper.learn_public import learn_public
from unveil.paper.private_image import learn_private_image

__all__ = ["find_all_florals", "find_floral_submatrix", "gram_extract", "is_floral"]
__all__ += ["learn_private_image", "learn_public", "psi", "psi_inverse"]
