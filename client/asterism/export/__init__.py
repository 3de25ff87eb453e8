"""Exports: from scans of a pinned version to partitions on disk."""
