"""Neighbor sampling over the partitions of a version.

Loops over draws belong to `storaged.kernels.neighbors`.
"""
