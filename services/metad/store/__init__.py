"""Where metad's memory lives: the `MetaStore` port, its adapters (`memory`, `rocks`), its `keys`
and `codec`.

RocksDB comes no further than `rocks`. Called by `metad.catalog`, `metad.hosts`'s keeper and
`metad.jobs.driver`; composed by `metad.app`."""
