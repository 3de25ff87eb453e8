"""Writes: validation of rows, distribution to storageds, group commit of small writes.
Reads do not belong here."""
