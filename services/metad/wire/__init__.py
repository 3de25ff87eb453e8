"""Conversion between metad's records and messages, of the network and of storage.

Rules about records belong to `metad.catalog` and `metad.jobs`.
"""
