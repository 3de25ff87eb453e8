"""Loads: from a reader's chunks to durable blocks, with progress, rejects and resumption."""

from asterism.ingest.loading import LoadProgress, LoadReport, load, schema_of

__all__ = ["LoadProgress", "LoadReport", "load", "schema_of"]
