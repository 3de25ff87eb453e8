"""Sampling and read operators over several storageds, one module for each family; filters.
Decoding of requests belongs to `graphd.api`, routes and dispatch to `graphd.routing`."""
