"""Assignment of nodes to the partitions of an export."""
