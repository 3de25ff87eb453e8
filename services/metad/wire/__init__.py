"""Conversion of metad's records to messages and to stored bytes, and back: one mapping for each.
Rules about records belong to `metad.catalog` and `metad.jobs`."""
