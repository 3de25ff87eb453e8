"""Relabeling of ids: hash indexes, bitsets and their ranks.

Code that reads a graph does not belong here.
"""
