"""The `MetaStore` port of metad's durable state, its adapters and its keys.
What values contain belongs to `metad.wire.storage`; RocksDB is imported by `rocksdb_store` only."""
