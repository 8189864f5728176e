"""What every room may use: blocks of work on threads or a cluster, memory, files, the folded normal
law.

    blocks   do these blocks, in parallel, here or on a cluster, within the memory, and go on later
    files    written whole or not at all; arrays without pickles, measured before they are read
    runs     a run directory: encodings, truth, recovery
    folded   what a magnitude says about a sum whose sign is hidden
"""
