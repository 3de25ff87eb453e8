"""The `MetaStore` port of metad's durable state, its adapters and its keys.

The format of values belongs to `metad.wire.record_encoding`; only `rocksdb_store` imports
RocksDB."""
