"""State of the catalog, kept in memory and written to the store before it is visible.

Records belong to `metad.model`; locking belongs to the callers (`metad.change_feed`)."""
