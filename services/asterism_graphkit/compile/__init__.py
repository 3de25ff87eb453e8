"""Compilation of kernels: the only modules that import Numba.

The kernels themselves belong elsewhere.
"""
