"""Shared parts of the tests: clusters, references, small graphs, assertions.
Tests do not belong here."""
