"""What there is: `spaces` (schema, parts, hosts), `loads` (chunks, bases, commits), `versions`
(manifests), `pins` (leases).

Its values are in `metad.model.catalog`; each module keeps its share in memory and writes it to the
`MetaStore` before anybody hears of it. Not thread-safe: `metad.change_feed` is locked by whoever
calls (`metad.service`, `metad.jobs.driver`)."""
