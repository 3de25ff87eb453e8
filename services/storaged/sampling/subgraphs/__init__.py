"""K-hop expansion, LABOR and induced subgraphs over the partitions of a version.

Loops over edges belong to `storaged.kernels`.
"""
