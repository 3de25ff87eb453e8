"""Pure numeric rooms that several daemons and the client's bulk work need: random words, alias
tables, CSR, splits.

No I/O, no clock, no network, no protobuf: arrays in, arrays out. `jit` and `lanes` are numba's
doors."""
