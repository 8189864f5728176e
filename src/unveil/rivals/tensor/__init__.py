"""What three encodings share, as a tensor, decomposed."""
