"""Domain values without I/O: schemas, filters, expressions, indexes, string ids.
Nothing here knows the wire, a file, a clock or a network."""
