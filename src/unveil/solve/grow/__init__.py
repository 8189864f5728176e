"""From the encodings that are explained to the others, by matching known vectors."""
