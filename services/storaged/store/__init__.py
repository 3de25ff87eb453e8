"""Storage on disk: the RocksDB engine, blocks, tables, and images as mapped arrays.
RocksDB is imported by `engine` only; the network does not belong here."""
