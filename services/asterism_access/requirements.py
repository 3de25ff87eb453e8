"""What each gRPC method requires of its caller.

`asterism_access.guard` enforces the table at the handlers, which serve gRPC, HTTP and statements
alike. A method without a row is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from asterism_access.roles import Role
from asterism_proto.methods import ACCESS, CATALOG, GRAPH, HEARTBEATS, STORE, Method


class Scope(Enum):
    """Where a method finds the space that it needs a role in."""

    SPACE = "space"
    """The field ``space`` of the request."""
    SPACE_ID = "space_id"
    """The space id of the request; for storageds."""
    LOAD = "load"
    """The space of the load ``load_id``."""
    JOB = "job"
    """The space of the job ``job_id``."""
    PIN = "pin"
    """The space of the pin ``pin_id``."""
    VISIBLE = "visible"
    """No space: any principal may call it, and the reply shows only spaces with the role."""
    INNER = "inner"
    """No space: the calls that the method makes are checked."""
    CLUSTER = "cluster"
    """Cluster administrators only."""
    DAEMON = "daemon"
    """Daemons of the cluster only."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a method requires of its caller."""

    scope: Scope
    role: Role = Role.READER
    changes: bool = False
    """True if the method changes something; such calls are in the audit log."""


def _catalog() -> dict[str, Requirement]:
    read, write, build = Role.READER, Role.WRITER, Role.BUILDER
    return {
        "create_space": Requirement(Scope.CLUSTER, changes=True),
        "describe_space": Requirement(Scope.SPACE, read),
        "list_spaces": Requirement(Scope.VISIBLE, read),
        "drop_space": Requirement(Scope.SPACE, Role.ADMIN, changes=True),
        "begin_load": Requirement(Scope.SPACE, write, changes=True),
        "register_chunks": Requirement(Scope.LOAD, write, changes=True),
        "commit_load": Requirement(Scope.LOAD, write, changes=True),
        "abandon_load": Requirement(Scope.LOAD, write, changes=True),
        "get_load": Requirement(Scope.LOAD, read),
        "list_commits": Requirement(Scope.SPACE, read),
        "submit_job": Requirement(Scope.SPACE, build, changes=True),
        "get_job": Requirement(Scope.JOB, read),
        "list_jobs": Requirement(Scope.VISIBLE, read),
        "stop_job": Requirement(Scope.JOB, build, changes=True),
        "recover_job": Requirement(Scope.JOB, build, changes=True),
        "list_hosts": Requirement(Scope.VISIBLE, read),
        "list_versions": Requirement(Scope.SPACE, read),
        "get_manifest": Requirement(Scope.SPACE, read),
        "pin_version": Requirement(Scope.SPACE, read, changes=True),
        "renew_pin": Requirement(Scope.PIN, read, changes=True),
        "release_pin": Requirement(Scope.PIN, read, changes=True),
        "list_pins": Requirement(Scope.VISIBLE, read),
        "export_space": Requirement(Scope.SPACE, build),
        "import_space": Requirement(Scope.CLUSTER, changes=True),
        "describe_catalog": Requirement(Scope.CLUSTER),
        "adopt_catalog": Requirement(Scope.CLUSTER, changes=True),
    }


def _access() -> dict[str, Requirement]:
    return {
        "create_api_key": Requirement(Scope.CLUSTER, changes=True),
        "list_api_keys": Requirement(Scope.CLUSTER),
        "revoke_api_key": Requirement(Scope.CLUSTER, changes=True),
        "grant_role": Requirement(Scope.SPACE, Role.ADMIN, changes=True),
        "revoke_role": Requirement(Scope.SPACE, Role.ADMIN, changes=True),
        "list_grants": Requirement(Scope.VISIBLE, Role.ADMIN),
        "set_access_limits": Requirement(Scope.CLUSTER, changes=True),
        "list_access_limits": Requirement(Scope.VISIBLE, Role.ADMIN),
    }


def _graph() -> dict[str, Requirement]:
    rows = {name: Requirement(Scope.SPACE, Role.READER) for name in _GRAPH_READS}
    return {
        **rows,
        "write": Requirement(Scope.SPACE, Role.WRITER, changes=True),
        "write_once": Requirement(Scope.SPACE, Role.WRITER, changes=True),
        "query": Requirement(Scope.INNER),
        "get_routes": Requirement(Scope.VISIBLE, Role.READER),
    }


_GRAPH_READS = (
    "find_nodes",
    "sample_nodes",
    "sample_nodes_like",
    "sample_negatives",
    "sample_edges",
    "sample_neighbors",
    "sample_fanout",
    "random_walk",
    "sample_pinsage",
    "sample_layer",
    "sample_layers",
    "sample_subgraph",
    "sample_ego_subgraphs",
    "sample_labor",
    "sample_hgt",
    "induced_subgraph",
    "neighbors",
    "degrees",
    "personalized_pagerank",
    "sample_graph_labels",
    "graph_nodes",
    "adjacency",
    "node_types",
    "node_features",
    "edge_features",
    "scan_nodes",
    "scan_edges",
    "nodes_at",
    "edges_at",
    "explain",
)
_STORE_WRITES = ("write_blocks", "seal_load")
_STORE_READS = (
    "exists",
    "draw_nodes",
    "draw_nodes_by_number",
    "draw_edges",
    "draw_neighbors",
    "expand",
    "sample_k_hop",
    "read_neighbors",
    "read_degrees",
    "read_induced_edges",
    "read_node_types",
    "read_graph_labels",
    "read_nodes_by_label",
    "walk",
    "has_edge",
    "evaluate_terms",
    "filter_rows",
    "read_node_features",
    "read_edge_features",
    "read_nodes",
    "read_nodes_at",
    "read_edges_at",
    "read_edges",
    "read_weight_histogram",
    "push_pagerank",
    "update_importance",
)
_STORE_OF_DAEMONS = ("list_revivals", "read_revivals", "list_log_records")


def _store() -> dict[str, Requirement]:
    return {
        "find_binary_endpoint": Requirement(Scope.VISIBLE, Role.READER),
        **{name: Requirement(Scope.SPACE_ID, Role.READER) for name in _STORE_READS},
        **{name: Requirement(Scope.SPACE_ID, Role.WRITER, changes=True) for name in _STORE_WRITES},
        **{name: Requirement(Scope.DAEMON) for name in _STORE_OF_DAEMONS},
    }


def _by_path(
    methods: Mapping[str, Method], rows: Mapping[str, Requirement]
) -> dict[str, Requirement]:
    return {methods[name].path: requirement for name, requirement in rows.items()}


REQUIREMENTS: Mapping[str, Requirement] = {
    **_by_path(GRAPH, _graph()),
    **_by_path(CATALOG, _catalog()),
    **_by_path(ACCESS, _access()),
    **_by_path(STORE, _store()),
    **{method.path: Requirement(Scope.DAEMON) for method in HEARTBEATS.values()},
}
"""Requirement of each gRPC method, by path."""
