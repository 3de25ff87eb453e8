"""Kernels of global node and edge sampling.

Neighbor sampling belongs to `storaged.kernels.neighbors`.
"""
