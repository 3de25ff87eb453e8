"""Random walks over the partitions of a version.

Loops over steps belong to `storaged.kernels.walks`.
"""
