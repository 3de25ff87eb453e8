"""Readers of DGL's chunked graph format.
Writing of that format belongs to `asterism.export`."""
