"""Global sampling of nodes and edges over the partitions of a version.

Loops over draws belong to `storaged.kernels.global_sampling`.
"""
