"""Readers of Euler's JSON graphs of versions 2.0 and 1.x, and of euler.meta.

Euler's operators belong to `asterism.euler`.
"""
