"""Natural images: private images out of encodings as InstaHide released them, with no training."""
