"""Kernels of induced subgraphs: joins of edges with a set of target nodes.
Expansion has `storaged.kernels.subgraphs`."""
