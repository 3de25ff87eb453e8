"""Pure numeric code that daemons and the client share: arrays in, arrays out.
I/O, clocks and protobuf do not belong here; Numba is imported by `compile` only."""
