"""The Store service: the table of its methods, and their shared state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NoReturn

from google.protobuf.message import Message

from asterism_daemonkit.recent_logs import list_log_records
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.tcp_client import TcpEndpoint
from asterism_proto.errors import Conflict
from asterism_proto.framing import Frame
from asterism_proto.methods import STORE
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from storaged.api import (
    features,
    filters,
    global_sampling,
    graph_labels,
    neighbors,
    scans,
    subgraphs,
    walks,
)
from storaged.api.version_resolution import FILTER_CACHE_BYTES, RequestVersions
from storaged.api.writes import BlockHandlers
from storaged.load_write_admission import Admissions
from storaged.local_spaces import LocalSpaces

Operation = Callable[[RequestVersions, Frame[Any], CallContext], Frame[Message]]
"""Method that reads a version: decodes a request, calls `storaged.sampling`, encodes."""

OPERATIONS: Mapping[str, Operation] = {
    "draw_nodes": global_sampling.draw_nodes,
    "draw_edges": global_sampling.draw_edges,
    "draw_nodes_by_number": global_sampling.draw_nodes_by_number,
    "draw_neighbors": neighbors.draw_neighbors,
    "read_neighbors": neighbors.read_neighbors,
    "read_degrees": neighbors.read_degrees,
    "has_edge": neighbors.has_edge,
    "expand": subgraphs.expand,
    "sample_k_hop": subgraphs.sample_k_hop,
    "update_importance": subgraphs.update_importance,
    "read_induced_edges": subgraphs.read_induced_edges,
    "walk": walks.walk,
    "push_pagerank": walks.push_pagerank,
    "evaluate_terms": filters.evaluate_terms,
    "filter_rows": filters.filter_rows,
    "read_node_features": features.read_node_features,
    "read_edge_features": features.read_edge_features,
    "read_node_types": features.read_node_types,
    "read_nodes": scans.read_nodes,
    "read_edges": scans.read_edges,
    "read_nodes_at": scans.read_nodes_at,
    "read_edges_at": scans.read_edges_at,
    "read_weight_histogram": scans.read_weight_histogram,
    "read_graph_labels": graph_labels.read_graph_labels,
    "read_nodes_by_label": graph_labels.read_nodes_by_label,
}
"""Methods that read a version, by handler name."""


class StoreService:
    """The handlers of the Store service.

    Parameters
    ----------
    local_spaces : LocalSpaces
        Graph spaces, stores and versions held here.
    stream_endpoint : callable
        Returns the endpoint of the binary RPC server.
    filter_cache_bytes : int
        Memory for the matching rows of filters, in bytes.
    admissions : Admissions, optional
        Loads that may be written. By default, all writes are refused.
    """

    def __init__(
        self,
        local_spaces: LocalSpaces,
        stream_endpoint: Callable[[], TcpEndpoint] = TcpEndpoint,
        *,
        filter_cache_bytes: int = FILTER_CACHE_BYTES,
        admissions: Admissions | None = None,
    ) -> None:
        self._stream_endpoint = stream_endpoint
        versions = RequestVersions(local_spaces, filter_cache_bytes)
        blocks = BlockHandlers(local_spaces, admissions or Admissions(_refuse_writes))
        handlers: dict[str, Handler] = {
            name: partial(operation, versions) for name, operation in OPERATIONS.items()
        }
        handlers |= {
            "find_binary_endpoint": self._find_binary_endpoint,
            "list_log_records": list_log_records,
            "write_blocks": blocks.write_blocks,
            "seal_load": blocks.seal_load,
            "exists": blocks.exists,
            "list_revivals": blocks.list_revivals,
            "read_revivals": blocks.read_revivals,
        }
        self.handlers: dict[str, Handler] = {
            STORE[name].path: handler for name, handler in handlers.items()
        }
        """Handlers by method path."""

    def _find_binary_endpoint(
        self, request: storaged_pb.FindBinaryEndpointRequest, call: CallContext
    ) -> storaged_pb.FindBinaryEndpointReply:
        """Return the endpoint of the binary RPC server."""
        endpoint = self._stream_endpoint()
        return storaged_pb.FindBinaryEndpointReply(
            port=endpoint.port, handshake_key=endpoint.key, unix_socket=endpoint.socket_name
        )


def _refuse_writes(space_id: int, load_id: int, chunk: int, timeout_s: float) -> NoReturn:
    raise Conflict(
        f"load {load_id} of space {space_id}: expected a process with write access; write "
        "through a graphd"
    )
