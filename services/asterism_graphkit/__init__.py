"""Pure numeric code that several daemons and the client share: random numbers, relabeling,
operators, evaluation of filters, arrays.

Arrays in, arrays out: I/O, clocks, networks and protobuf do not belong here. Numba is imported in
`compile` only."""
