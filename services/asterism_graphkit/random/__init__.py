"""Counter-based random numbers, and sampling from them: alias tables, partitions.
Nothing here knows a graph."""
