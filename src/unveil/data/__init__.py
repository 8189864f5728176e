"""Where vectors come from: the Gaussian model, the user's arrays, folders of images."""

from unveil.data.arrays import load_vectors
from unveil.data.gaussian import gaussian_vectors
from unveil.data.images import load_image_folder

__all__ = ["gaussian_vectors", "load_image_folder", "load_vectors"]
