"""Clusters: which nodes belong together, for batches of whole clusters (Cluster-GCN). Kept in a folder, given as arrays, or a feature of nodes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import arguments
from asterism.arrays import Ids, Shown
from asterism.names import NodeTypes
from asterism.reading import Reader
from asterism.records import NodeBatch, Subgraph
from asterism.versions import VersionInfo
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound
from asterism_proto.schema import Feature
from asterism_proto.v1 import metad_pb2 as meta

_MANIFEST, _ONE_TYPE = "manifest.json", "_N"
"""Of `asterism.export.assignment`: its record of what it wrote, and what it calls the node type of a homogeneous graph."""
_MOST = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ClusterBatch(Shown):
    """Some clusters, and the subgraph of their nodes."""

    clusters: Ids
    """int64 [q]: their numbers, in the order of the epoch."""
    subgraph: Subgraph
    """As of `Graph.induced_subgraph`: nodes by cluster, and in it by id; all edges among them, between the clusters too."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Clusters(Shown):
    """A cluster for each of a version's nodes, or of some of them: what `Graph.cluster_batches` goes through.

    Made by `in_folder`, `of_feature` or `of_arrays`. It may cross a fork or be pickled; of a folder only its name is.
    """

    space: str
    version: int
    digest: str
    """Of the version: batches of another one are refused."""
    count: int
    """How many clusters there are, numbered from 0; any may be empty."""
    identity: str
    """What tells this clustering from others: a digest of it."""
    members: Mapping[str, Ids]
    """int64 [n] by node type: ids, cluster after cluster, in one by id. Mapped where they are in a folder."""
    offsets: Mapping[str, Ids]
    """int64 [count + 1] by node type: cluster c is ``members[offsets[c]:offsets[c + 1]]``."""
    folder: Path | None = None

    @classmethod
    def in_folder(cls, folder: str | Path) -> Clusters:
        """The clusters that `asterism.export.assignment` (``asterism export assignment``) wrote into a folder; they are mapped, not read.

        Raises
        ------
        NotFound
            Where a file is missing.
        Corrupt
            Where a file is not as it was written.
        """
        root = Path(folder)
        told = _manifest(root)
        members, offsets = {}, {}
        for label in told["nodes"]:
            members[label] = _mapped(root, f"{label}.members.npy", told["files"])
            offsets[label] = _mapped(root, f"{label}.offsets.npy", told["files"])
            if len(offsets[label]) != told["parts"] + 1 or offsets[label][-1] != len(members[label]):
                raise Corrupt(f"{root}: {label}.offsets.npy does not fit {len(members[label])} nodes in {told['parts']} clusters; write it again")
        return cls(
            space=told["space"],
            version=told["version"],
            digest=told["digest"],
            count=told["parts"],
            identity=hashlib.sha256(json.dumps(told["files"], sort_keys=True).encode()).hexdigest()[:16],
            members=members,
            offsets=offsets,
            folder=root,
        )

    @classmethod
    def of_arrays(cls, graph: Reader, by_type: Mapping[str, tuple[ArrayLike, ArrayLike]], *, version: int | None = None) -> Clusters:
        """Clusters from the nodes of each type and their numbers.

        Parameters
        ----------
        graph : Graph
        by_type : dict of node type to (nodes, clusters)
            int64[n] each; a node once. Types and nodes that are not there are in no batch.
        version : int, optional
            The version that they are of; None: that of the graph, or the current one.

        Raises
        ------
        InvalidRequest
            Where a node is there twice, or a number is below 0.
        """
        return cls._of(graph, by_type, described(graph, version))

    @classmethod
    def _of(cls, graph: Reader, by_type: Mapping[str, tuple[ArrayLike, ArrayLike]], info: VersionInfo) -> Clusters:
        """Clusters of a version that is known."""
        held: dict[str, tuple[Ids, Ids]] = {}
        for name, (nodes, numbers) in by_type.items():
            graph.schema.node_type_id(name)
            ids = graph._there(f"nodes of {name!r}", nodes, name, info.version or None)
            own = arguments.ids(f"clusters of {name!r}", numbers)
            arguments.same_length(f"clusters of {name!r}", own, len(ids))
            order = np.lexsort((ids, own))
            ids, own = ids[order], own[order]
            once, times = np.unique(ids, return_counts=True)
            if (times > 1).any():
                raise InvalidRequest(f"node {once[np.argmax(times > 1)]} of {name!r} is there twice; a node is of one cluster")
            held[name] = ids, own
        count = max((int(own[-1]) + 1 for _, own in held.values() if len(own)), default=0)
        if count >= _MOST:
            raise InvalidRequest(f"cluster {count - 1}: expected numbers below {_MOST}, from 0 on")
        members = {name: ids for name, (ids, _) in held.items()}
        offsets = {name: np.searchsorted(own, np.arange(count + 1)).astype(np.int64) for name, (_, own) in held.items()}
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
    def of_feature(cls, graph: Any, name: str, *, version: int | None = None) -> Clusters:
        """Clusters that a feature numbers: one whole number of each node, of every node type that has a feature of this name.

        All nodes of these types are scanned, and kept here: 8 bytes a node.

        Raises
        ------
        NotFound
            Where no node type has such a feature.
        InvalidRequest
            Where it is not one whole number of each node, or below 0.
        """
        own = [(node_type.name, feature) for node_type in graph.schema.node_types for feature in node_type.features if feature.name == name]
        if not own:
            raise NotFound(f"feature {name!r}: no node type of space {graph.space!r} has it")
        for ntype, feature in own:
            _whole(ntype, feature)
        info = described(graph, version)
        by_type = {}
        for ntype, _ in own:
            batches = [(batch.ids, batch.features[name]) for batch in graph.scan_nodes(ntype, name, version=info.version)]
            ids = np.concatenate([np.zeros(0, np.int64), *(ids for ids, _ in batches)])
            by_type[ntype] = ids, np.concatenate([np.zeros(0, np.int64), *(numbers.astype(np.int64) for _, numbers in batches)])
        return cls._of(graph, by_type, info)

    def keep(self, graph: Any, feature: str) -> int:
        """Write the clusters into a feature of their nodes, which keeps them in the space; give back the commit number.

        They go through versions, backups and exports with the nodes, and `of_feature` takes them from there; visible with the next
        build. Nodes that come later have the feature that they are written with, 0 where it is left out.

        Parameters
        ----------
        graph : Graph
            Of the version that the clusters are of, after which nothing was written: every node is written once more, as that version
            has it.
        feature : str
            One whole number of each node, of every node type that has clusters.

        Raises
        ------
        InvalidRequest
            Where the feature is none of a type, is of another kind or too narrow, a node is of no cluster, or the version another one.
        Conflict
            Where the space was written to after that version: build it, and cluster that one.
        """
        known = described(graph, self.version)
        if known.digest != self.digest:
            raise InvalidRequest(f"the clusters are of another content of version {self.version} of space {self.space!r}; cluster this one")
        with graph.pin(known.version) as held:
            load = graph.client.begin_load(graph.space, source=f"clusters {self.identity}")
            try:
                index = 0
                for label in self.members:
                    for batch, features in self._labelled(held, label, feature):
                        node_type = held.schema.node_types[self._type_id(held, label)]
                        load.write_nodes(index, node_type.name, batch.ids, batch.weights if node_type.weighted else None, features)
                        index += 1
                later = graph._session.catalog("list_commits", meta.ListCommitsRequest(space=graph.space, after=known.cut)).commits
                if later:
                    raise Conflict(
                        f"space {graph.space!r} has {len(later)} commits after version {known.version}: build them, and cluster what comes of it"
                    )
                commit: int = load.commit()
            except BaseException:
                load.abandon()
                raise
        return commit

    def _labelled(self, held: Any, label: str, feature: str) -> Iterator[tuple[NodeBatch, dict[str, Any]]]:
        """All nodes of a type, with their features, one of which says their clusters."""
        node_type = held.schema.node_types[self._type_id(held, label)]
        columns = {column.name: column for column in node_type.features}
        if feature not in columns:
            raise InvalidRequest(
                f"node type {node_type.name!r} has no feature {feature!r} to keep clusters in; it has {', '.join(columns) or 'none'}"
            )
        dtype = _whole(node_type.name, columns[feature])
        if self.count - 1 > np.iinfo(dtype).max:
            raise InvalidRequest(f"feature {feature!r} of {node_type.name!r} is {dtype}; clusters go to {self.count - 1}")
        numbers = np.repeat(np.arange(self.count, dtype=dtype), np.diff(self.offsets[label]))
        order = np.argsort(self.members[label])
        ids, numbers = self.members[label][order], numbers[order]
        for batch in held.scan_nodes(node_type.name, [name for name in columns if name != feature]):
            at = np.minimum(np.searchsorted(ids, batch.ids), max(len(ids) - 1, 0))
            alone = ids[at] != batch.ids if len(ids) else np.ones(len(batch.ids), bool)
            if alone.any():
                raise InvalidRequest(
                    f"node {batch.ids[np.argmax(alone)]} of {node_type.name!r} is of no cluster; only clusters of all nodes can be kept"
                )
            yield batch, {**batch.features, feature: numbers[at]}

    @staticmethod
    def _type_id(graph: Any, label: str) -> int:
        """Of a node type as a folder calls it."""
        types = graph.schema.node_types
        return 0 if label == _ONE_TYPE and len(types) == 1 else int(graph.schema.node_type_id(label))

    def nodes(self, clusters: ArrayLike) -> dict[str, Ids]:
        """The nodes of some clusters, one cluster after another; int64[m] by node type."""
        numbers = arguments.ids("clusters", clusters)
        if numbers.size and int(numbers.max()) >= self.count:
            raise InvalidRequest(f"cluster {int(numbers.max())}: there are {self.count}, from 0 on")
        none = np.zeros(0, np.int64)
        return {
            name: np.concatenate([none, *(ids[self.offsets[name][c] : self.offsets[name][c + 1]] for c in numbers.tolist())])
            for name, ids in self.members.items()
        }

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is not None:
            return Clusters.in_folder, (self.folder,)
        return _made, ({name: getattr(self, name) for name in self.__slots__},)


def _whole(ntype: str, feature: Feature) -> np.dtype[Any]:
    """The dtype of a feature that is one whole number of each node; InvalidRequest where it is not."""
    if feature.kind != "dense" or feature.shape or np.dtype(feature.dtype).kind not in "iu":
        raise InvalidRequest(f"feature {feature.name!r} of {ntype!r} is not one whole number of each node; clusters are numbered from 0")
    return np.dtype(feature.dtype)


def _made(fields: dict[str, Any]) -> Clusters:
    return Clusters(**fields)


Given = Clusters | str | Path | Mapping[str, tuple[ArrayLike, ArrayLike]]
"""Clusters as a caller has them: a folder of theirs, or for each node type nodes and their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """What batches of clusters are made of: the clusters, and how their subgraphs are read."""

    clusters: Clusters
    how: Mapping[str, Any]
    """Arguments of `Graph.induced_subgraph`."""

    @classmethod
    def of(cls, graph: Reader, clusters: Given, how: Mapping[str, Any], version: VersionInfo) -> Grouping:
        """Clusters of a graph, those in a folder, or given as arrays.

        Raises
        ------
        InvalidRequest
            Where they are of another version.
        """
        if isinstance(clusters, Mapping):
            return cls(clusters=Clusters._of(graph, clusters, version), how=how)
        known = clusters if isinstance(clusters, Clusters) else Clusters.in_folder(clusters)
        if known.digest != version.digest:
            raise InvalidRequest(
                f"the clusters are of version {known.version} of space {known.space!r}, and this reads version {version.version} of {graph.space!r}: "
                "nodes may have come and gone; cluster it anew, or read the version that they are of (`Graph.at`, `Graph.pin`)"
            )
        return cls(clusters=known, how=how)

    def batch(self, graph: Any, numbers: Ids, version: int) -> ClusterBatch:
        """The batch of some clusters."""
        found = self.clusters.nodes(numbers)
        known = {node_type.name: type_id for type_id, node_type in enumerate(graph.schema.node_types)}
        if len(known) == 1:
            known.setdefault(_ONE_TYPE, 0)
        if len(found) == 1:
            ((label, nodes),) = found.items()
            ntype: NodeTypes = graph.schema.node_types[known[label]].name
        else:
            kinds: list[NDArray[np.int32]] = [np.full(len(ids), known[name], np.int32) for name, ids in found.items()]
            ntype = np.concatenate([np.zeros(0, np.int32), *kinds])
            nodes = np.concatenate([np.zeros(0, np.int64), *found.values()])
        return ClusterBatch(clusters=numbers, subgraph=graph.induced_subgraph(nodes, ntype=ntype, version=version, **self.how))


def described(graph: Reader, version: int | None) -> VersionInfo:
    """What a version holds, the one that a graph reads."""
    request = meta.ManifestRequest(space=graph.space, version=graph._version(version))
    return graph._session.manifest(graph._session.catalog("get_manifest", request), graph.space)


def _manifest(root: Path) -> dict[str, Any]:
    path = root / _MANIFEST
    if not path.is_file():
        raise NotFound(f"{path}: no such file; `asterism export assignment` writes a folder of clusters with it")
    try:
        told: dict[str, Any] = json.loads(path.read_text())
        kind = told["kind"]
        of_clusters = {"space": str, "version": int, "digest": str, "parts": int, "nodes": dict, "files": dict}
        right = all(isinstance(told[name], kind_of) for name, kind_of in of_clusters.items())
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"{path}: it is not as it was written ({error!r}); write the assignment again") from error
    if kind != "assignment" or not right:
        raise InvalidRequest(f"{path}: it is of {kind!r}; expected a folder that `asterism export assignment` wrote")
    return told


def _mapped(root: Path, name: str, files: Mapping[str, Any]) -> Ids:
    """An array of a folder, mapped; its size is held against what was written."""
    path = root / name
    if name not in files or not path.is_file():
        raise NotFound(f"{path}: no such file; write the assignment again, of a space whose version is still there")
    if path.stat().st_size != files[name]["bytes"]:
        raise Corrupt(f"{path}: {path.stat().st_size} bytes, {files[name]['bytes']} were written; bring the folder here again")
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise Corrupt(f"{path}: not an array ({error}); bring the folder here again") from error
    if found.dtype != np.int64 or found.ndim != 1:
        raise Corrupt(f"{path}: {found.dtype} {list(found.shape)}, expected int64 in one dimension; bring the folder here again")
    return np.asarray(found)
