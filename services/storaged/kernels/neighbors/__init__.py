"""Kernels of neighbor sampling, with and without replacement, by time and by index.

The choice of a kernel belongs to `storaged.sampling.neighbors`.
"""
