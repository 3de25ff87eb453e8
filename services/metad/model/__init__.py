"""Records of metad: the catalog, jobs and their kinds, daemons, ids, results of tasks.
Their storage belongs to `metad.store`, their messages to `metad.wire`."""
