"""The `MetaStore` port of metad's durable state, its adapters over memory and RocksDB, its keys.
What values contain belongs to `metad.wire.storage`; RocksDB is imported by `rocksdb_store` only."""
