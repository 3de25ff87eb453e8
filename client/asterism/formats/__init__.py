"""Readers of graph files: each yields chunks of columns in bounded memory. They know no service."""

from asterism.formats.chunks import BadRow, EdgeChunk, GraphSource, NodeChunk
from asterism.formats.detection import open_source

__all__ = ["BadRow", "EdgeChunk", "GraphSource", "NodeChunk", "open_source"]
