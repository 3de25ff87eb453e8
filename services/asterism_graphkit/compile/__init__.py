"""Compilation of kernels: the only modules that import Numba.
Kernels themselves belong elsewhere."""
