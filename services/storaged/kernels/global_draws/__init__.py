"""Kernels of global node and edge sampling.
Neighbor sampling has `storaged.kernels.neighbors`."""
