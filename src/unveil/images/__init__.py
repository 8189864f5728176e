"""Natural images: private images out of encodings as InstaHide released them, with no training.

`recover_images` is public; the walk through the attack begins in `rounds`.
"""

from unveil.images.recover import recover_images

__all__ = ["recover_images"]
