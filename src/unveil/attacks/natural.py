"""Natural images: private images out of encodings as InstaHide released them (`images.recover`)."""

from unveil.images.recover import recover_images

NAME = "natural"
natural = recover_images
ATTACK = natural
