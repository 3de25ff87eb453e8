"""Pure numeric code that the daemons and the client share: arrays in, arrays out.

I/O, clocks and protobuf do not belong here. Only `compile` imports Numba.
"""
