"""Loads: from a reader's chunks to durable blocks, with progress, rejects and resumption."""

from asterism.ingest.loading import LoadReport, LoadProgress, load, schema_of

__all__ = ["LoadReport", "LoadProgress", "load", "schema_of"]
