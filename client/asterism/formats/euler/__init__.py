"""Readers of Euler's JSON graphs, of 2.0 and 1.x, with its euler.meta.
Euler's operators belong to `asterism.euler`."""
