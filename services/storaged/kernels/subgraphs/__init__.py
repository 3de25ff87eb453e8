"""Kernels of k-hop expansion and LABOR.

Induced subgraphs belong to `storaged.kernels.induced`.
"""
