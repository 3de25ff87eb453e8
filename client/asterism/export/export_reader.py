"""Finished export, read back from its files: id ranges, maps and partition graphs.

Verification, dispatch and the conversion to PyG read exports through this module.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_graph_files import Csr, read_graphs
from asterism.export.global_ids import GlobalIdRanges
from asterism.export.graph_source import Array, Ids
from asterism.export.row_checksums import ids_sum
from asterism_proto.errors import Corrupt

_STEP = 1 << 18
_MAX_OPENED_EDGES = 1 << 18
"""Largest number of edges of which all partitions are open at the same time."""
_MASK = (1 << 64) - 1

EdgeChecksum = tuple[int, int]
"""Number of edges, and the sum of their ids and ends; equal for equal edge sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedGraph:
    """All partitions of an export."""

    folder: Path
    lists_folder: Path
    """Folder with the lists of stored ids; the export's own, or one with rebuilt lists."""
    config: Mapping[str, Any]
    nodes: GlobalIdRanges
    edges: GlobalIdRanges
    ntypes: tuple[str, ...]
    """Labels, by type id."""
    etypes: tuple[str, ...]
    halo_nodes: tuple[int, ...]
    """Number of halo nodes in each partition, according to the manifest."""
    problems: tuple[str, ...]
    """Errors found in the configuration."""

    @classmethod
    def open(
        cls, folder: Path, manifest: Mapping[str, Any], *, lists: Path | None = None
    ) -> ExportedGraph:
        """Open the export in a folder and check its configuration against the manifest."""
        config: dict[str, Any] = json.loads((folder / manifest["config"]).read_text())
        problems: list[str] = []
        tables: list[tuple[tuple[str, ...], GlobalIdRanges]] = []
        for element in ("node", "edge"):
            ids: Mapping[str, int] = config[f"{element[0]}types"]
            labels = tuple(sorted(ids, key=lambda label: ids[label]))
            if [ids[label] for label in labels] != list(range(len(labels))):
                raise Corrupt(
                    f"{manifest['config']}: the ids of {element} types are "
                    f"{sorted(ids.values())}, not 0, 1, ..."
                )
            ranges = GlobalIdRanges.from_counts(
                np.array([manifest[f"{element}s"][label] for label in labels], np.int64).T.reshape(
                    manifest["parts"], len(labels)
                )
            )
            problems += [
                (
                    f"{manifest['config']}: {element}_map of {label} is not the ranges of what "
                    "each part owns"
                )
                for type_index, label in enumerate(labels)
                if config[f"{element}_map"][label] != ranges.type_ranges(type_index)
            ]
            if config[f"num_{element}s"] != ranges.total:
                problems.append(
                    f"{manifest['config']}: num_{element}s is {config[f'num_{element}s']}; "
                    f"the parts own {ranges.total}"
                )
            tables.append((labels, ranges))
        return cls(
            folder=folder,
            lists_folder=lists or folder,
            config=config,
            nodes=tables[0][1],
            edges=tables[1][1],
            ntypes=tables[0][0],
            etypes=tables[1][0],
            halo_nodes=tuple(manifest["halo_nodes"]),
            problems=tuple(problems),
        )

    @property
    def parts(self) -> int:
        """Number of partitions."""
        return len(self.nodes.starts)

    @property
    def hops(self) -> int:
        """Number of halo hops of each partition."""
        return int(self.config["halo_hops"])

    def node_ids(self, label: str) -> Ids:
        """Return the stored id of every node of a type, by type-wise id."""
        ids: Ids = np.load(self.lists_folder / f"node_ids/{label}.npy", mmap_mode="r")
        return ids

    def edge_ids(self, label: str) -> Ids:
        """Return the stored id of every edge of a type, by type-wise id."""
        ids: Ids = np.load(self.lists_folder / f"edge_ids/{label}.npy", mmap_mode="r")
        return ids

    def src_type_of(self, label: str) -> int:
        """Return the type id of an edge type's sources."""
        return self.ntypes.index(label.split(":")[0])

    def dst_type_of(self, label: str) -> int:
        """Return the type id of an edge type's destinations."""
        return self.ntypes.index(label.split(":")[2])

    def typewise_ids(self, ntype: int, gids: Ids) -> Ids:
        """Return the type-wise ids of nodes of one type, given global ids."""
        owners = self.nodes.owners(gids)
        first_ids = np.cumsum(self.nodes.counts[:, ntype]) - self.nodes.counts[:, ntype]
        typewise_ids: Ids = first_ids[owners] + gids - self.nodes.starts[owners, ntype]
        return typewise_ids

    def stored_ids(self, ntype: int, gids: Ids) -> Ids:
        """Return the stored ids of nodes of one type, given global ids."""
        ids = self.node_ids(self.ntypes[ntype])
        return ids[self.typewise_ids(ntype, gids)] if len(ids) else np.zeros(0, np.int64)

    def part(self, part: int) -> ExportedPart:
        """Open one partition."""
        return ExportedPart.open(self, part)

    def required_halo_edges(self) -> list[EdgeChecksum]:
        """Return the checksum of the edges that each partition must hold of other partitions."""
        counts, sums = np.zeros(self.parts, np.int64), [0] * self.parts
        if self.hops > 1:
            # Each partition needs the edges of all others.
            can_open_all = self.edges.total <= _MAX_OPENED_EDGES
            opened = [self.part(part) for part in range(self.parts)] if can_open_all else []
            return [self._multi_hop_halo_edges(part, opened) for part in range(self.parts)]
        for part in range(self.parts):
            low, high = self.nodes.part_range(part)
            for gid, src, dst in self.part(part).all_owned_edges():
                owners = self.nodes.owners(src)
                for owner in np.unique(owners[(src < low) | (src >= high)]).tolist():
                    owner_mask = owners == owner
                    counts[owner] += int(owner_mask.sum())
                    sums[owner] = (
                        sums[owner] + ids_sum(gid[owner_mask], src[owner_mask], dst[owner_mask])
                    ) & _MASK
        return [(int(count), each) for count, each in zip(counts, sums, strict=True)]

    def _multi_hop_halo_edges(self, part: int, opened: Sequence[ExportedPart]) -> EdgeChecksum:
        """Return the checksum for one partition with more than one halo hop.

        ``opened`` has all partitions, or none if each is to be opened when it is read.
        """
        low, high = self.nodes.part_range(part)
        seen, frontier = (np.zeros(self.nodes.total, np.bool_) for _ in range(2))
        expanded = np.zeros(self.nodes.total, np.bool_)
        seen[low:high] = True
        for _, src, _ in (opened[part] if opened else self.part(part)).all_owned_edges():
            frontier[src] = True
        for _ in range(self.hops - 1):
            frontier &= ~seen
            seen |= frontier
            expanded |= frontier
            next_frontier = np.zeros(self.nodes.total, np.bool_)
            for _, src, dst in self._all_edges(opened):
                next_frontier[src[frontier[dst]]] = True
            frontier = next_frontier
        count, total = 0, 0
        for gid, src, dst in self._all_edges(opened):
            from_own_node = (src >= low) & (src < high)
            selected = ((dst < low) | (dst >= high)) & (from_own_node | expanded[dst])
            count += int(selected.sum())
            total = (total + ids_sum(gid[selected], src[selected], dst[selected])) & _MASK
        return count, total

    def _all_edges(self, opened: Sequence[ExportedPart]) -> Iterator[tuple[Ids, Ids, Ids]]:
        for part in range(self.parts):
            yield from (opened[part] if opened else self.part(part)).all_owned_edges()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExportedPart:
    """Graph of one partition, as mapped arrays."""

    export: ExportedGraph
    number: int
    count: int
    """Number of nodes."""
    src: Array
    """Local node ids, by local edge id."""
    dst: Array
    other_formats: tuple[tuple[str, Array, Array], ...]
    """Sources and destinations read from the remaining formats."""
    ndata: Mapping[str, Array]
    edata: Mapping[str, Array]

    @classmethod
    def open(cls, export: ExportedGraph, part: int) -> ExportedPart:
        """Read a partition; raise Corrupt if its file is not the graph of a partition."""
        path = export.folder / f"part{part}/graph.dgl"
        graphs = read_graphs(path).graphs
        if len(graphs) != 1 or len(graphs[0].relations) != 1 or len(graphs[0].num_nodes) != 1:
            raise Corrupt(f"{path}: expected one graph of one node type and one edge type")
        (graph,), (relation,) = graphs, graphs[0].relations
        edge_formats: list[tuple[str, Array, Array]] = []
        if relation.coo is not None:
            edge_formats.append(("coo", relation.coo.row.array(), relation.coo.col.array()))
        for name, matrix in (("csr", relation.csr), ("csc", relation.csc)):
            if matrix is not None:
                ends = _ends(path, matrix)
                edge_formats.append((name, *(ends if name == "csr" else ends[::-1])))
        if not edge_formats:
            raise Corrupt(f"{path}: no format of edges")
        return cls(
            export=export,
            number=part,
            count=graph.num_nodes[0],
            src=edge_formats[0][1],
            dst=edge_formats[0][2],
            other_formats=tuple(edge_formats[1:]),
            ndata={name: column.array() for name, column in graph.ndata[0].items()},
            edata={name: column.array() for name, column in graph.edata[0].items()},
        )

    def problems(self) -> Iterator[str]:
        """Yield the errors of this partition alone."""
        file_name = f"part{self.number}/graph.dgl"
        for name, src, dst in self.other_formats:
            if not (np.array_equal(src, self.src) and np.array_equal(dst, self.dst)):
                yield f"{file_name}: the edges in {name} are others"
        export = self.export
        low, high = export.nodes.part_range(self.number)
        nodes, edges = self.ndata["_ID"], self.edata["_ID"]
        if self.count != len(nodes) or self.count - (high - low) != export.halo_nodes[self.number]:
            halo = export.halo_nodes[self.number]
            yield (
                f"{file_name}: {self.count} nodes, {len(nodes)} ids; {high - low} of its own "
                f"and {halo} of other parts were written"
            )
            return
        if len(edges) != len(self.src) or (
            len(self.src) and max(int(self.src.max()), int(self.dst.max())) >= self.count
        ):
            yield (
                f"{file_name}: {len(self.src)} edges between {self.count} nodes, "
                f"{len(edges)} ids: edges lead to no node"
            )
            return
        yield from self._check_frame(file_name, "node", self.ndata, export.nodes)
        yield from self._check_frame(file_name, "edge", self.edata, export.edges)
        first, last = export.edges.part_range(self.number)
        is_owned = np.asarray(self.dst) < high - low
        if not np.array_equal(is_owned, np.arange(len(is_owned)) < last - first):
            yield f"{file_name}: edges into its own nodes are not just those that it owns"
        has_edge = np.zeros(self.count, np.bool_)
        has_edge[self.src] = True
        has_edge[self.dst] = True
        if not has_edge[high - low :].all():
            isolated_id = nodes[high - low + int(np.argmin(has_edge[high - low :]))]
            yield f"{file_name}: HALO node {isolated_id} is at no edge"

    def _check_frame(
        self, file_name: str, element: str, data: Mapping[str, Array], ranges: GlobalIdRanges
    ) -> Iterator[str]:
        """Yield errors in the ids, flags, owners and types of nodes or edges."""
        low, high = ranges.part_range(self.number)
        ids = np.asarray(data["_ID"])
        halo_ids = ids[high - low :]
        if not np.array_equal(ids[: high - low], np.arange(low, high)):
            yield f"{file_name}: the first {element}s are not those that the part owns, in order"
        if halo_ids.size and (
            (np.diff(halo_ids) <= 0).any()
            or ((halo_ids >= low) & (halo_ids < high)).any()
            or halo_ids.min() < 0
            or halo_ids.max() >= ranges.total
        ):
            yield (
                f"{file_name}: the {element}s of other parts are not in order, each once, or "
                "not of other parts"
            )
            return
        if not np.array_equal(
            np.asarray(data[f"inner_{element}"]) != 0, np.arange(len(ids)) < high - low
        ):
            yield f"{file_name}: inner_{element} does not mark the {element}s of the partition"
        if (
            element == "node"
            and len(ranges.starts) > 1
            and not np.array_equal(data["part_id"], ranges.owners(ids))
        ):
            yield f"{file_name}: part_id differs from the owners of the nodes"
        if "_TYPE" in data and not np.array_equal(data["_TYPE"], ranges.types(ids)):
            yield f"{file_name}: _TYPE differs from the types of the {element}s"
        if "_TYPE" not in data and ranges.starts.shape[1] > 2:
            yield f"{file_name}: {element}s have no _TYPE"

    def _edge_batches(self, low: int, high: int) -> Iterator[tuple[int, Ids, Ids]]:
        """Yield position and global ids of the ends of local edges ``low .. high - 1``."""
        ids = self.ndata["_ID"]
        for start in range(low, high, _STEP):
            stop = min(high, start + _STEP)
            yield start - low, ids[self.src[start:stop]], ids[self.dst[start:stop]]

    def owned_edges(self, etype: int) -> Iterator[tuple[int, Ids, Ids]]:
        """Yield position within the type and global ids of the ends of owned edges of a type."""
        starts = self.export.edges.starts[self.number] - self.export.edges.starts[self.number, 0]
        yield from self._edge_batches(int(starts[etype]), int(starts[etype + 1]))

    def all_owned_edges(self) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Yield the global ids of owned edges, their sources and their destinations."""
        first, last = self.export.edges.part_range(self.number)
        for offset, src, dst in self._edge_batches(0, last - first):
            yield np.arange(first + offset, first + offset + len(src)), src, dst

    def halo_edges(self) -> EdgeChecksum:
        """Return the checksum of the stored edges of other partitions."""
        first, last = self.export.edges.part_range(self.number)
        count, total, ids = 0, 0, self.edata["_ID"]
        for offset, src, dst in self._edge_batches(last - first, len(self.src)):
            count += len(src)
            total = (
                total
                + ids_sum(
                    np.asarray(ids[last - first + offset : last - first + offset + len(src)]),
                    src,
                    dst,
                )
            ) & _MASK
        return count, total


def _ends(path: Path, matrix: Csr) -> tuple[Array, Array]:
    """Return rows and columns of a compressed matrix, by edge id."""
    indptr, indices, order = (
        np.asarray(column.array()) for column in (matrix.indptr, matrix.indices, matrix.data)
    )
    seen = np.zeros(len(indices), np.bool_)
    if (
        len(order) != len(indices)
        or len(indptr) != matrix.rows + 1
        or indptr[-1] != len(indices)
        or (np.diff(indptr) < 0).any()
    ):
        raise Corrupt(f"{path}: a compressed matrix with rows that do not end where its edges do")
    seen[order] = True
    if not seen.all():
        raise Corrupt(f"{path}: a compressed matrix with an edge twice")
    rows: NDArray[np.int64] = np.empty(len(indices), np.int64)
    cols: NDArray[np.int64] = np.empty(len(indices), np.int64)
    rows[order] = np.repeat(np.arange(matrix.rows), np.diff(indptr))
    cols[order] = indices
    return rows, cols
