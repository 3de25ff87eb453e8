"""The loops of draws and reads: compiled functions of flat arrays, no objects, no I/O, no clock.

A kernel draws with words of a key and a counter (`asterism_graphkit.random.rng`) and raises
nothing: `storaged.sampling` checks its arguments once, in words, before it calls."""
