"""Compiled kernels of sampling and lookups: functions of flat arrays.

Kernels have no objects, no I/O and no clock. A kernel draws with words of a key and a counter
(`asterism_graphkit.random.rng`) and raises no errors: `storaged.sampling` validates the arguments
before it calls one.

Kernels take ``(tables, params, inputs..., outputs...)``, at most ten parameters:

* tables: addresses of a partition's arrays as one int64 table (`storaged.kernels.adjacency_rows`),
  or one such table per edge type;
* params: scalars; three or more of them form one
  `asterism_graphkit.compile.named_tuple_arguments.kernel_record`;
* inputs and outputs: arrays. The last one is a ``stop`` flag if a call may take long.

A kernel that needs scratch arrays creates them, puts them into named tuples and passes these to one
inlined function with the loop. Inlined functions count no references, so tuples of arrays cost
nothing there.
"""
