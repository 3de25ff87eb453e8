"""Kernels of random walks: uniform, weighted and node2vec.

The order of steps across hosts belongs to `storaged.sampling.walks`.
"""
