"""Kernels over plain arrays: sort keys, merges, hashes, elementary functions.
Nothing here knows a graph or a random number."""
