"""Clusters of nodes, for batches of whole clusters (Cluster-GCN).

Clusters come from a folder, from arrays, or from a node feature.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import validation
from asterism.calls.graph_protocol import GraphProtocol
from asterism.calls.loads import begin_load
from asterism.calls.string_id_hashing import NodeTypes
from asterism.local_paths import local_path
from asterism.records.arrays import ArrayRecord, Ids
from asterism.records.samples import NodeBatch, Subgraph
from asterism.records.versions import VersionInfo
from asterism_model.schema import Feature
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound
from asterism_proto.v1 import metad_pb2 as metad_pb

_MANIFEST, _ONE_TYPE = "manifest.json", "_N"
"""Manifest name, and type name in homogeneous graphs, of `asterism.export.assignment`.
"""
_MAX_CLUSTERS = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ClusterBatch(ArrayRecord):
    """A batch of clusters with the subgraph of their nodes."""

    clusters: Ids
    """ndarray of int64, shape (q,): cluster numbers, in the order of the epoch."""
    subgraph: Subgraph
    """Subgraph as returned by `Graph.induced_subgraph`, with all edges among the nodes.

    Nodes are ordered by cluster, and by id within a cluster. Edges between the clusters are
    included.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Clusters(ArrayRecord):
    """Assignment of some or all nodes of a version to clusters.

    `Graph.cluster_batches` iterates over it. Created by `in_folder`, `of_feature` or `of_arrays`.
    It survives a fork and can be pickled; if it comes from a folder, only the folder's path is
    pickled.
    """

    space: str
    version: int
    digest: str
    """Digest of the version; batches of a version with another digest are rejected."""
    count: int
    """Number of clusters, numbered from 0; any of them may be empty."""
    identity: str
    """Digest that identifies this assignment."""
    members: Mapping[str, Ids]
    """Node ids by node type, ndarray of int64, shape (n,): ordered by cluster, then by id.

    Memory-mapped if they come from a folder.
    """
    offsets: Mapping[str, Ids]
    """Offsets by node type, ndarray of int64, shape (count + 1,).

    Cluster c is ``members[offsets[c]:offsets[c + 1]]``.
    """
    folder: Path | None = None

    @classmethod
    def in_folder(cls, folder: str | Path) -> Clusters:
        """Open the clusters in a folder that ``asterism export assignment`` wrote.

        The arrays are memory-mapped, not read.

        Parameters
        ----------
        folder : str or Path
            Output folder of `asterism.export.assignment`.

        Returns
        -------
        Clusters
            Clusters of the version that the manifest names.

        Raises
        ------
        NotFound
            If a file is missing.
        Corrupt
            If a file differs from what was written.
        """
        root = local_path("clusters", folder)
        manifest = _manifest(root)
        members, offsets = {}, {}
        for label in manifest["nodes"]:
            members[label] = _map_array(root, f"{label}.members.npy", manifest["files"])
            offsets[label] = _map_array(root, f"{label}.offsets.npy", manifest["files"])
            if len(offsets[label]) != manifest["parts"] + 1 or offsets[label][-1] != len(
                members[label]
            ):
                raise Corrupt(
                    f"{root}/{label}.offsets.npy: expected offsets of {len(members[label])} nodes "
                    f"in {manifest['parts']} clusters; write the assignment again"
                )
        return cls(
            space=manifest["space"],
            version=manifest["version"],
            digest=manifest["digest"],
            count=manifest["parts"],
            identity=hashlib.sha256(
                json.dumps(manifest["files"], sort_keys=True).encode()
            ).hexdigest()[:16],
            members=members,
            offsets=offsets,
            folder=root,
        )

    @classmethod
    def of_arrays(
        cls,
        graph: GraphProtocol,
        by_type: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        version: int | None = None,
    ) -> Clusters:
        """Build clusters from node ids and cluster numbers.

        Parameters
        ----------
        graph : Graph
            Graph of the nodes.
        by_type : dict of str to (nodes, clusters)
            Two array_like of int64, shape (n,), per node type; each node at most once. Types and
            nodes that are not listed appear in no batch.
        version : int, optional
            Version of the nodes. None: the version of the graph, or the current one.

        Returns
        -------
        Clusters
            The assignment.

        Raises
        ------
        InvalidRequest
            If a node is listed twice, or a cluster number is negative.
        """
        return cls._of(graph, by_type, describe_version(graph, version))

    @classmethod
    def _of(
        cls,
        graph: GraphProtocol,
        by_type: Mapping[str, tuple[ArrayLike, ArrayLike]],
        info: VersionInfo,
    ) -> Clusters:
        """Build clusters of a known version."""
        grouped: dict[str, tuple[Ids, Ids]] = {}
        for name, pair in by_type.items():
            graph.schema.node_type_id(name)
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InvalidRequest(
                    f"clusters of {name!r}={pair!r:.80}: expected a pair, the nodes and the "
                    "cluster of each"
                )
            nodes, numbers = pair
            ids = graph._require_ids(f"nodes of {name!r}", nodes, name, info.version or None)
            cluster_ids = validation.ids(f"clusters of {name!r}", numbers)
            validation.require_length(f"clusters of {name!r}", cluster_ids, len(ids))
            order = np.lexsort((ids, cluster_ids))
            ids, cluster_ids = ids[order], cluster_ids[order]
            unique_ids, times = np.unique(ids, return_counts=True)
            if (times > 1).any():
                raise InvalidRequest(
                    f"nodes of {name!r} with {unique_ids[np.argmax(times > 1)]} twice: expected "
                    "each node once, in one cluster"
                )
            grouped[name] = ids, cluster_ids
        count = max(
            (int(cluster_ids[-1]) + 1 for _, cluster_ids in grouped.values() if len(cluster_ids)),
            default=0,
        )
        if count >= _MAX_CLUSTERS:
            raise InvalidRequest(
                f"clusters with {count - 1}: expected numbers from 0 to {_MAX_CLUSTERS - 1}"
            )
        members = {name: ids for name, (ids, _) in grouped.items()}
        offsets = {
            name: np.searchsorted(cluster_ids, np.arange(count + 1)).astype(np.int64)
            for name, (_, cluster_ids) in grouped.items()
        }
        state = hashlib.sha256()
        for name in sorted(members):
            for array in (members[name], offsets[name]):
                state.update(f"{name}{len(array)}".encode() + array.astype("<i8").tobytes())
        return cls(
            space=graph.space,
            version=info.version,
            digest=info.digest,
            count=count,
            identity=state.hexdigest()[:16],
            members=members,
            offsets=offsets,
        )

    @classmethod
    def of_feature(cls, graph: GraphProtocol, name: str, *, version: int | None = None) -> Clusters:
        """Read clusters from an integer feature that holds each node's cluster number.

        Every node type that has a feature of this name is included. All nodes of these types are
        scanned and held in memory: 8 bytes per node.

        Parameters
        ----------
        graph : Graph
            Graph of the nodes.
        name : str
            Name of the feature.
        version : int, optional
            Version to read. None: the version of the graph, or the current one.

        Returns
        -------
        Clusters
            The assignment.

        Raises
        ------
        NotFound
            If no node type has such a feature.
        InvalidRequest
            If the feature is not one integer per node, or a value is negative.
        """
        owners = [
            (node_type.name, feature)
            for node_type in graph.schema.node_types
            for feature in node_type.features
            if feature.name == name
        ]
        if not owners:
            raise NotFound(f"feature {name!r}: no node type of space {graph.space!r} has it")
        for ntype, feature in owners:
            _integer_dtype(ntype, feature)
        info = describe_version(graph, version)
        by_type = {}
        for ntype, _ in owners:
            batches = [
                (batch.ids, np.asarray(batch.features[name], np.int64))
                for batch in graph.scan_nodes(ntype, name, version=info.version)
            ]
            ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in batches)])
            numbers = np.concatenate([np.zeros(0, np.int64), *(column for _, column in batches)])
            by_type[ntype] = (ids, numbers)
        return cls._of(graph, by_type, info)

    def keep(self, graph: GraphProtocol, feature: str) -> int:
        """Store the clusters in a feature of their nodes and return the commit number.

        The feature travels with the nodes through versions, backups and exports, and `of_feature`
        reads the clusters back. It is visible with the next build. Nodes written later have the
        value that they are written with, or 0 if it is left out.

        Parameters
        ----------
        graph : Graph
            Graph at the version of the clusters. Nothing may have been written after that version:
            every node is written again as that version has it.
        feature : str
            Name of the feature: one integer per node, declared by every node type that has
            clusters.

        Returns
        -------
        int
            Commit number of the write.

        Raises
        ------
        InvalidRequest
            If a type lacks the feature, the feature has another kind or is too narrow, a node has
            no cluster, or the version has other content.
        Conflict
            If the space was written to after that version. Build it, and cluster the new version.
        """
        info = describe_version(graph, self.version)
        if info.digest != self.digest:
            raise InvalidRequest(
                f"clusters of version {self.version} of space {self.space!r}: expected clusters of "
                "the present content of that version; assign clusters again"
            )
        with graph.pin(info.version) as pinned:
            load = begin_load(graph._session, graph.space, source=f"clusters {self.identity}")
            try:
                index = 0
                for label in self.members:
                    for batch, features in self._feature_batches(pinned, label, feature):
                        node_type = pinned.schema.node_types[self._type_id(pinned, label)]
                        load.write_nodes(
                            index,
                            node_type.name,
                            batch.ids,
                            batch.weights if node_type.weighted else None,
                            features,
                        )
                        index += 1
                newer_commits = graph._session.catalog(
                    "list_commits",
                    metad_pb.ListCommitsRequest(space=graph.space, after=info.watermark),
                ).commits
                if newer_commits:
                    raise Conflict(
                        f"space {graph.space!r} has {len(newer_commits)} commits after "
                        f"version {info.version}; build them, then assign clusters again"
                    )
                commit: int = load.commit()
            except BaseException:
                load.abandon()
                raise
        return commit

    def _feature_batches(
        self, graph: GraphProtocol, label: str, feature: str
    ) -> Iterator[tuple[NodeBatch, dict[str, Any]]]:
        """Yield all nodes of a type with their features, the cluster number among them."""
        node_type = graph.schema.node_types[self._type_id(graph, label)]
        columns = {column.name: column for column in node_type.features}
        if feature not in columns:
            raise InvalidRequest(
                f"feature={feature!r}: expected a feature of node type {node_type.name!r} that "
                f"holds cluster numbers; it has {', '.join(columns) or 'none'}"
            )
        dtype = _integer_dtype(node_type.name, columns[feature])
        if self.count - 1 > np.iinfo(dtype).max:
            raise InvalidRequest(
                f"feature={feature!r}: expected a dtype that holds {self.count - 1}, the largest "
                f"cluster number, in node type {node_type.name!r}; it is {dtype}"
            )
        numbers = np.repeat(np.arange(self.count, dtype=dtype), np.diff(self.offsets[label]))
        order = np.argsort(self.members[label])
        ids, numbers = self.members[label][order], numbers[order]
        for batch in graph.scan_nodes(
            node_type.name, [name for name in columns if name != feature]
        ):
            positions = np.minimum(np.searchsorted(ids, batch.ids), max(len(ids) - 1, 0))
            unassigned = ids[positions] != batch.ids if len(ids) else np.ones(len(batch.ids), bool)
            if unassigned.any():
                raise InvalidRequest(
                    f"node {batch.ids[np.argmax(unassigned)]} of {node_type.name!r}: expected a "
                    "cluster for each node of the type; assign the others too"
                )
            yield batch, {**batch.features, feature: numbers[positions]}

    @staticmethod
    def _type_id(graph: GraphProtocol, label: str) -> int:
        """Return the id of a node type from its name in a folder."""
        types = graph.schema.node_types
        return (
            0 if label == _ONE_TYPE and len(types) == 1 else int(graph.schema.node_type_id(label))
        )

    def nodes(self, clusters: ArrayLike) -> dict[str, Ids]:
        """Return the nodes of some clusters.

        Parameters
        ----------
        clusters : array_like of int64, shape (q,)
            Cluster numbers.

        Returns
        -------
        dict of str to ndarray of int64, shape (m,)
            Node ids by node type, cluster after cluster in the order of the request.

        Raises
        ------
        InvalidRequest
            If there is no cluster of such a number.
        """
        numbers = validation.ids("clusters", clusters)
        if numbers.size and int(numbers.max()) >= self.count:
            raise InvalidRequest(
                f"clusters with {int(numbers.max())}: expected 0 to {self.count - 1}"
            )
        empty = np.zeros(0, np.int64)
        return {
            name: np.concatenate(
                [
                    empty,
                    *(
                        ids[self.offsets[name][c] : self.offsets[name][c + 1]]
                        for c in numbers.tolist()
                    ),
                ]
            )
            for name, ids in self.members.items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:
            return Clusters.in_folder, (self.folder,)
        return _from_fields, ({name: getattr(self, name) for name in self.__slots__},)


def _integer_dtype(ntype: str, feature: Feature) -> np.dtype[Any]:
    """Return the dtype of a feature that is one integer per node, or raise InvalidRequest."""
    if feature.kind != "dense" or feature.shape or np.dtype(feature.dtype).kind not in "iu":
        raise InvalidRequest(
            f"feature={feature.name!r}: expected one integer for each node of {ntype!r}, a "
            f"cluster number; it is {feature.dtype}{list(feature.shape)}"
        )
    return np.dtype(feature.dtype)


def _from_fields(fields: dict[str, Any]) -> Clusters:
    return Clusters(**fields)


ClusterInput = Clusters | str | Path | Mapping[str, tuple[ArrayLike, ArrayLike]]
"""Clusters as a caller may pass them.

An assignment, a folder, or per node type the nodes and their cluster numbers.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGrouping:
    """Clusters, with the options for reading the subgraphs of their batches."""

    clusters: Clusters
    subgraph_options: Mapping[str, Any]
    """Arguments of `Graph.induced_subgraph`."""

    @classmethod
    def from_input(
        cls,
        graph: GraphProtocol,
        clusters: ClusterInput,
        subgraph_options: Mapping[str, Any],
        version: VersionInfo,
    ) -> ClusterGrouping:
        """Resolve clusters that are given as an assignment, a folder or arrays.

        Raises
        ------
        InvalidRequest
            If the clusters belong to another version.
        """
        if isinstance(clusters, Mapping):
            return cls(
                clusters=Clusters._of(graph, clusters, version), subgraph_options=subgraph_options
            )
        if not isinstance(clusters, Clusters | str | PathLike):
            raise InvalidRequest(
                f"clusters={clusters!r:.80}: expected clusters, a folder of them, or a dict of "
                "node type to (nodes, clusters)"
            )
        resolved = clusters if isinstance(clusters, Clusters) else Clusters.in_folder(clusters)
        if resolved.digest != version.digest:
            raise InvalidRequest(
                f"clusters of version {resolved.version} of space {resolved.space!r}: expected "
                f"clusters of version {version.version} of {graph.space!r}, which this graph "
                "reads; assign clusters again, or read their version with Graph.at or Graph.pin"
            )
        return cls(clusters=resolved, subgraph_options=subgraph_options)

    def batch(self, graph: GraphProtocol, numbers: Ids, version: int) -> ClusterBatch:
        """Return the batch of some clusters."""
        nodes_by_type = self.clusters.nodes(numbers)
        type_ids = {
            node_type.name: type_id for type_id, node_type in enumerate(graph.schema.node_types)
        }
        if len(type_ids) == 1:
            type_ids.setdefault(_ONE_TYPE, 0)
        if len(nodes_by_type) == 1:
            ((label, nodes),) = nodes_by_type.items()
            ntype: NodeTypes = graph.schema.node_types[type_ids[label]].name
        else:
            kinds: list[NDArray[np.int32]] = [
                np.full(len(ids), type_ids[name], np.int32) for name, ids in nodes_by_type.items()
            ]
            ntype = np.concatenate([np.zeros(0, np.int32), *kinds])
            nodes = np.concatenate([np.zeros(0, np.int64), *nodes_by_type.values()])
        return ClusterBatch(
            clusters=numbers,
            subgraph=graph.induced_subgraph(
                nodes, ntype=ntype, version=version, **self.subgraph_options
            ),
        )


def describe_version(graph: GraphProtocol, version: int | None) -> VersionInfo:
    """Return the description of a version, by default the one that a graph reads."""
    request = metad_pb.ManifestRequest(space=graph.space, version=graph._version(version))
    return graph._session.manifest(graph._session.catalog("get_manifest", request), graph.space)


def _manifest(root: Path) -> dict[str, Any]:
    path = root / _MANIFEST
    if not path.is_file():
        raise NotFound(
            f"{path}: no such file; pass a folder that `asterism export assignment` wrote"
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text())
        kind = manifest["kind"]
        required = {
            "space": str,
            "version": int,
            "digest": str,
            "parts": int,
            "nodes": dict,
            "files": dict,
        }
        is_valid = all(
            isinstance(manifest[name], expected_type) for name, expected_type in required.items()
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path}: damaged ({error!r}); write the assignment again") from error
    if kind != "assignment" or not is_valid:
        raise InvalidRequest(
            f"{path}: expected the manifest of an assignment, found {kind!r}; pass a folder that "
            "`asterism export assignment` wrote"
        )
    return manifest


def _map_array(root: Path, name: str, files: Mapping[str, Any]) -> Ids:
    """Memory-map an array of a folder after checking its size against the manifest."""
    path = root / name
    if name not in files or not path.is_file():
        raise NotFound(
            f"{path}: no such file; write the assignment again, from a version that still exists"
        )
    if path.stat().st_size != files[name]["bytes"]:
        raise Corrupt(
            f"{path}: expected {files[name]['bytes']} bytes, found {path.stat().st_size}; copy "
            "the folder again"
        )
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise Corrupt(f"{path}: not an array ({error}); copy the folder again") from error
    if array.dtype != np.int64 or array.ndim != 1:
        raise Corrupt(
            f"{path}: expected int64 of one dimension, found {array.dtype}{list(array.shape)}; "
            "copy the folder again"
        )
    return np.asarray(array)
