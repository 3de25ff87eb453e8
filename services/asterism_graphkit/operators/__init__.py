"""Pure parts of operators that graphd and storaged share: k-hop, HGT, LABOR, layers, PageRank.
I/O does not belong here."""
