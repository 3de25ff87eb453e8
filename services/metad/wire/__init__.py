"""Conversion of metad's records to messages and stored bytes, and back.
Rules about records belong to `metad.catalog` and `metad.jobs`."""
