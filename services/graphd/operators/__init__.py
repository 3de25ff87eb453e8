"""Sampling and read operators over several storageds, one module per family; filters.
Decoding of requests belongs to `graphd.api`, routes and dispatch to `graphd.routing`."""
