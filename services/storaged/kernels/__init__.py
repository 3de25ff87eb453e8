"""Kernels of sampling and reads: compiled loops over flat arrays, with counter-based randomness.
Validation belongs to `storaged.sampling`: kernels raise nothing, and know no I/O or clock."""
