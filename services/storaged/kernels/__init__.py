"""Kernels of sampling and reads: compiled loops over flat arrays.
Validation belongs to `storaged.sampling`: kernels raise nothing, and know no I/O or clock."""
