"""The overlap engine: every pair of encodings once, in blocks, on threads or a cluster."""
