"""Loads: from a reader's chunks to durable blocks, with progress, rejects and resumption."""
