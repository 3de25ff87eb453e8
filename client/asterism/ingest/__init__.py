"""Loads of graph files: chunks become durable blocks, with rejects and resumption.

Readers of files belong to `asterism.formats`, the calls of a load to `asterism.calls.loads`.
"""

from asterism.ingest.bulk_load import LoadProgress, LoadReport, load, schema_of

# Alias kept for earlier releases.
Progress = LoadProgress

__all__ = ["LoadProgress", "LoadReport", "load", "schema_of"]
