"""Pure code of operators that graphd and storaged share, such as k-hop and LABOR.

I/O does not belong here.
"""
