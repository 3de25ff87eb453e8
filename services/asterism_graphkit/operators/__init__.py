"""Pure halves of operators that graphd and storaged share: k-hop expansion, HGT, LABOR, layers,
PageRank.

I/O does not belong here.
"""
