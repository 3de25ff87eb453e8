"""Loads: from a reader's chunks to durable blocks, with progress, rejects and resumption."""

from asterism.ingest.loading import LoadReport, Progress, load, schema_of

__all__ = ["LoadReport", "Progress", "load", "schema_of"]
