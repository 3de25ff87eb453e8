"""Calls of a graph, one module for each family of operators, with validation and decoding.
Records that calls return belong to `asterism.records`, connections to `asterism.transport`."""
