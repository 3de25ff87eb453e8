"""Tests of Asterism, one folder for each level, and benchmarks.
Code that several tests share belongs to `tests.kit`."""
