"""Where metad's memory lives: the `MetaStore` port (`port`), its adapters (`memory_store`,
`rocksdb_store`, `revisions`) and its `keys`.

RocksDB comes no further than `rocksdb_store`; records become bytes in `metad.wire.storage`. Called
by `metad.catalog`, `metad.hosts`'s keeper and `metad.jobs.driver`; composed by `metad.app`."""
