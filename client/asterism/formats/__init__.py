"""Readers of graph files, each of which yields chunks of columns in bounded memory.

Writing to a graph space belongs to `asterism.ingest`. Nothing here uses the service.
"""

from asterism.extras import required

with required("ingest", "graph files"):
    from asterism.formats.chunks import BadRow, EdgeChunk, NodeChunk
    from asterism.formats.detection import open_source
    from asterism.formats.graph_source import GraphSource

__all__ = ["BadRow", "EdgeChunk", "GraphSource", "NodeChunk", "open_source"]
