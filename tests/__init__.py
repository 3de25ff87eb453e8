"""Tests of Asterism by level: unit, contract, property, distributions, integration, structure.
Code that several tests share belongs to `tests.kit`."""
