"""Kernels of k-hop expansion and LABOR.
Induced subgraphs have `storaged.kernels.induced`."""
