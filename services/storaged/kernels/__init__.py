"""The loops of draws and reads: compiled functions of flat arrays, no objects, no I/O, no clock.

A kernel draws with words of a key and a counter (`asterism_graphkit.random.rng`) and raises
nothing: `storaged.sampling` checks its arguments once, in words, before it calls.

Kernels take ``(tables, params, inputs..., outputs...)``, ten parameters at most:

* tables: addresses of a partition's arrays as one int64 table (`storaged.kernels.adjacency`), or
  one such table per edge type;
* params: scalars, three or more of them as one `asterism_graphkit.compile.records.kernel_record`;
* inputs and outputs: arrays; the last one is a ``stop`` flag where a call may take long.

A kernel that needs scratch makes it, puts it into named tuples and hands these to one inlined
function, which has the loop: inlined functions count no references, so that tuples of arrays cost
nothing there."""
