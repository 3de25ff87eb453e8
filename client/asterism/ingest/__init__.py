"""Loads: from a reader's chunks to durable blocks, with progress, rejects and resumption."""

from asterism.ingest.loading import LoadProgress, LoadReport, load, schema_of

# Name of earlier releases.
Progress = LoadProgress

__all__ = ["LoadProgress", "LoadReport", "load", "schema_of"]
