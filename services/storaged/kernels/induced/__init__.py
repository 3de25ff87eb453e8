"""Kernels of induced subgraphs: joins of edges with a set of target nodes.

Expansion belongs to `storaged.kernels.subgraphs`.
"""
