"""Where vectors come from: the Gaussian model, the user's arrays, tables and images, the challenge,
the package."""

from unveil.data.arrays import load_vectors, read_labels
from unveil.data.bundled import gaussian_vectors
from unveil.data.challenge import read_challenge
from unveil.data.dataset import Dataset, load_dataset
from unveil.data.tables import read_table

__all__ = [
    "Dataset",
    "gaussian_vectors",
    "load_dataset",
    "load_vectors",
    "read_challenge",
    "read_labels",
    "read_table",
]
