"""Relabeling of ids: hash indexes, bitsets and their ranks.
Nothing here reads a graph."""
