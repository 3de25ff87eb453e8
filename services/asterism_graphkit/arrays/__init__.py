"""Kernels over plain arrays: sort keys, merges, hashes and elementary functions.

Code that knows graphs or random numbers does not belong here.
"""
