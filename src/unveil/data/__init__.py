"""Where vectors come from: the Gaussian model, the user's arrays, tables and images, the challenge,
the package."""

from unveil.data.arrays import load_vectors
from unveil.data.challenge import read_challenge
from unveil.data.dataset import Dataset, load_dataset
from unveil.data.gaussian import gaussian_vectors
from unveil.data.images import load_image_folder

__all__ = [
    "Dataset",
    "gaussian_vectors",
    "load_dataset",
    "load_image_folder",
    "load_vectors",
    "read_challenge",
]
