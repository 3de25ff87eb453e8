"""A finished export as it lies in its files: ranges, maps and the graph of each part, read on their own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.dgl_graphs import Csr, read_graphs
from asterism.export.layout import Ranges
from asterism.export.source import Array, Ids
from asterism.export.sums import ids_sum
from asterism_proto.errors import Corrupt

_STEP = 1 << 18
_MASK = (1 << 64) - 1

Edges = tuple[int, int]
"""How many edges, and the sum of their global ids and ends: equal where the edges are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The whole of an export."""

    folder: Path
    lists: Path
    """Where the lists of stored ids are: its own folder, or where they were made again."""
    config: Mapping[str, Any]
    nodes: Ranges
    edges: Ranges
    ntypes: tuple[str, ...]
    """Labels, by type id."""
    etypes: tuple[str, ...]
    halo_nodes: tuple[int, ...]
    """By part, as the manifest says."""
    problems: tuple[str, ...]
    """What is wrong with the configuration."""

    @classmethod
    def of(cls, folder: Path, manifest: Mapping[str, Any], *, lists: Path | None = None) -> Held:
        """The export in a folder, by its configuration; which the manifest must agree with."""
        config: dict[str, Any] = json.loads((folder / manifest["config"]).read_text())
        problems: list[str] = []
        found: list[tuple[tuple[str, ...], Ranges]] = []
        for what in ("node", "edge"):
            ids: Mapping[str, int] = config[f"{what[0]}types"]
            labels = tuple(sorted(ids, key=lambda label: ids[label]))
            if [ids[label] for label in labels] != list(range(len(labels))):
                raise Corrupt(f"{manifest['config']}: the ids of {what} types are {sorted(ids.values())}, not 0, 1, ...")
            ranges = Ranges.of(np.array([manifest[f"{what}s"][label] for label in labels], np.int64).T.reshape(manifest["parts"], len(labels)))
            problems += [
                f"{manifest['config']}: {what}_map of {label} is not the ranges of what each part owns"
                for place, label in enumerate(labels)
                if config[f"{what}_map"][label] != ranges.spans(place)
            ]
            if config[f"num_{what}s"] != ranges.total:
                problems.append(f"{manifest['config']}: num_{what}s is {config[f'num_{what}s']}; the parts own {ranges.total}")
            found.append((labels, ranges))
        return cls(
            folder=folder,
            lists=lists or folder,
            config=config,
            nodes=found[0][1],
            edges=found[1][1],
            ntypes=found[0][0],
            etypes=found[1][0],
            halo_nodes=tuple(manifest["halo_nodes"]),
            problems=tuple(problems),
        )

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.nodes.starts)

    @property
    def hops(self) -> int:
        """How far parts reach."""
        return int(self.config["halo_hops"])

    def node_ids(self, label: str) -> Ids:
        """The stored id of every node of a type, by type-wise id."""
        ids: Ids = np.load(self.lists / f"node_ids/{label}.npy", mmap_mode="r")
        return ids

    def edge_ids(self, label: str) -> Ids:
        """The stored id of every edge of a type, by type-wise id."""
        ids: Ids = np.load(self.lists / f"edge_ids/{label}.npy", mmap_mode="r")
        return ids

    def src_of(self, label: str) -> int:
        """The type of the sources of an edge type."""
        return self.ntypes.index(label.split(":")[0])

    def dst_of(self, label: str) -> int:
        """The type of the destinations of an edge type."""
        return self.ntypes.index(label.split(":")[2])

    def typewise(self, ntype: int, gids: Ids) -> Ids:
        """The type-wise ids of nodes of one type, by global id."""
        owners = self.nodes.owners(gids)
        before = np.cumsum(self.nodes.counts[:, ntype]) - self.nodes.counts[:, ntype]
        found: Ids = before[owners] + gids - self.nodes.starts[owners, ntype]
        return found

    def stored(self, ntype: int, gids: Ids) -> Ids:
        """The stored ids of nodes of one type, by global id."""
        ids = self.node_ids(self.ntypes[ntype])
        return ids[self.typewise(ntype, gids)] if len(ids) else np.zeros(0, np.int64)

    def part(self, number: int) -> HeldPart:
        """One part."""
        return HeldPart.of(self, number)

    def needed(self) -> list[Edges]:
        """What each part must hold of other parts."""
        counts, sums = np.zeros(self.parts, np.int64), [0] * self.parts
        if self.hops > 1:
            return [self._reached(number) for number in range(self.parts)]
        for number in range(self.parts):
            low, high = self.nodes.part(number)
            for gid, src, dst in self.part(number).all_owned():
                owners = self.nodes.owners(src)
                for owner in np.unique(owners[(src < low) | (src >= high)]).tolist():
                    mine = owners == owner
                    counts[owner] += int(mine.sum())
                    sums[owner] = (sums[owner] + ids_sum(gid[mine], src[mine], dst[mine])) & _MASK
        return [(int(count), each) for count, each in zip(counts, sums, strict=True)]

    def _reached(self, number: int) -> Edges:
        """The same of one part that reaches further."""
        low, high = self.nodes.part(number)
        seen, frontier = (np.zeros(self.nodes.total, np.bool_) for _ in range(2))
        wanted = np.zeros(self.nodes.total, np.bool_)
        seen[low:high] = True
        for _, src, _ in self.part(number).all_owned():
            frontier[src] = True
        for _ in range(self.hops - 1):
            frontier &= ~seen
            seen |= frontier
            wanted |= frontier
            following = np.zeros(self.nodes.total, np.bool_)
            for _, src, dst in self._everything():
                following[src[frontier[dst]]] = True
            frontier = following
        count, total = 0, 0
        for gid, src, dst in self._everything():
            own = (src >= low) & (src < high)
            mine = ((dst < low) | (dst >= high)) & (own | wanted[dst])
            count += int(mine.sum())
            total = (total + ids_sum(gid[mine], src[mine], dst[mine])) & _MASK
        return count, total

    def _everything(self) -> Iterator[tuple[Ids, Ids, Ids]]:
        for number in range(self.parts):
            yield from self.part(number).all_owned()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeldPart:
    """The graph of one part, as mapped arrays."""

    held: Held
    number: int
    count: int
    """Nodes."""
    src: Array
    """Local ids, by local edge id."""
    dst: Array
    others: tuple[tuple[str, Array, Array], ...]
    """The same from further formats."""
    ndata: Mapping[str, Array]
    edata: Mapping[str, Array]

    @classmethod
    def of(cls, held: Held, number: int) -> HeldPart:
        """Read a part; Corrupt where its file is no graph of a partition."""
        path = held.folder / f"part{number}/graph.dgl"
        graphs = read_graphs(path).graphs
        if len(graphs) != 1 or len(graphs[0].relations) != 1 or len(graphs[0].num_nodes) != 1:
            raise Corrupt(f"{path}: expected one graph of one node type and one edge type")
        (graph,), (relation,) = graphs, graphs[0].relations
        found: list[tuple[str, Array, Array]] = []
        if relation.coo is not None:
            found.append(("coo", relation.coo.row.array(), relation.coo.col.array()))
        for name, matrix in (("csr", relation.csr), ("csc", relation.csc)):
            if matrix is not None:
                ends = _ends(path, matrix)
                found.append((name, *(ends if name == "csr" else ends[::-1])))
        if not found:
            raise Corrupt(f"{path}: no format of edges")
        return cls(
            held=held,
            number=number,
            count=graph.num_nodes[0],
            src=found[0][1],
            dst=found[0][2],
            others=tuple(found[1:]),
            ndata={name: column.array() for name, column in graph.ndata[0].items()},
            edata={name: column.array() for name, column in graph.edata[0].items()},
        )

    def problems(self) -> Iterator[str]:
        """What is wrong with the part by itself."""
        where = f"part{self.number}/graph.dgl"
        for name, src, dst in self.others:
            if not (np.array_equal(src, self.src) and np.array_equal(dst, self.dst)):
                yield f"{where}: the edges in {name} are others"
        held = self.held
        low, high = held.nodes.part(self.number)
        nodes, edges = self.ndata["_ID"], self.edata["_ID"]
        if self.count != len(nodes) or self.count - (high - low) != held.halo_nodes[self.number]:
            halo = held.halo_nodes[self.number]
            yield f"{where}: {self.count} nodes, {len(nodes)} ids; {high - low} of its own and {halo} of other parts were written"
            return
        if len(edges) != len(self.src) or (len(self.src) and max(int(self.src.max()), int(self.dst.max())) >= self.count):
            yield f"{where}: {len(self.src)} edges between {self.count} nodes, {len(edges)} ids: edges lead to no node"
            return
        yield from self._frame(where, "node", self.ndata, held.nodes)
        yield from self._frame(where, "edge", self.edata, held.edges)
        first, last = held.edges.part(self.number)
        inner = np.asarray(self.dst) < high - low
        if not np.array_equal(inner, np.arange(len(inner)) < last - first):
            yield f"{where}: edges into its own nodes are not just those that it owns"
        touched = np.zeros(self.count, np.bool_)
        touched[self.src] = True
        touched[self.dst] = True
        if not touched[high - low :].all():
            lonely = nodes[high - low + int(np.argmin(touched[high - low :]))]
            yield f"{where}: HALO node {lonely} is at no edge"

    def _frame(self, where: str, what: str, data: Mapping[str, Array], ranges: Ranges) -> Iterator[str]:
        """What is wrong with the ids, flags, owners and types of nodes or edges."""
        low, high = ranges.part(self.number)
        ids = np.asarray(data["_ID"])
        beside = ids[high - low :]
        if not np.array_equal(ids[: high - low], np.arange(low, high)):
            yield f"{where}: the first {what}s are not those that the part owns, in order"
        if beside.size and (
            (np.diff(beside) <= 0).any() or ((beside >= low) & (beside < high)).any() or beside.min() < 0 or beside.max() >= ranges.total
        ):
            yield f"{where}: the {what}s of other parts are not in order, each once, or not of other parts"
            return
        if not np.array_equal(np.asarray(data[f"inner_{what}"]) != 0, np.arange(len(ids)) < high - low):
            yield f"{where}: inner_{what} does not tell its own {what}s"
        if what == "node" and len(ranges.starts) > 1 and not np.array_equal(data["part_id"], ranges.owners(ids)):
            yield f"{where}: part_id does not tell the owners of nodes"
        if "_TYPE" in data and not np.array_equal(data["_TYPE"], ranges.types(ids)):
            yield f"{where}: _TYPE does not tell the types of {what}s"
        if "_TYPE" not in data and ranges.starts.shape[1] > 2:
            yield f"{where}: {what}s have no _TYPE"

    def _slice(self, low: int, high: int) -> Iterator[tuple[int, Ids, Ids]]:
        """Position, and global ids of the ends, of local edges ``low .. high - 1``."""
        ids = self.ndata["_ID"]
        for at in range(low, high, _STEP):
            until = min(high, at + _STEP)
            yield at - low, ids[self.src[at:until]], ids[self.dst[at:until]]

    def owned(self, etype: int) -> Iterator[tuple[int, Ids, Ids]]:
        """Position in its type, and global ids of the ends, of each edge of a type that the part owns."""
        starts = self.held.edges.starts[self.number] - self.held.edges.starts[self.number, 0]
        yield from self._slice(int(starts[etype]), int(starts[etype + 1]))

    def all_owned(self) -> Iterator[tuple[Ids, Ids, Ids]]:
        """Global ids of the edges that the part owns, and of their ends."""
        first, last = self.held.edges.part(self.number)
        for at, src, dst in self._slice(0, last - first):
            yield np.arange(first + at, first + at + len(src)), src, dst

    def beside(self) -> Edges:
        """The edges of other parts that it holds."""
        first, last = self.held.edges.part(self.number)
        count, total, ids = 0, 0, self.edata["_ID"]
        for at, src, dst in self._slice(last - first, len(self.src)):
            count += len(src)
            total = (total + ids_sum(np.asarray(ids[last - first + at : last - first + at + len(src)]), src, dst)) & _MASK
        return count, total


def _ends(path: Path, matrix: Csr) -> tuple[Array, Array]:
    """Rows and columns of a compressed matrix, by edge id."""
    indptr, indices, order = (np.asarray(column.array()) for column in (matrix.indptr, matrix.indices, matrix.data))
    seen = np.zeros(len(indices), np.bool_)
    if len(order) != len(indices) or len(indptr) != matrix.rows + 1 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise Corrupt(f"{path}: a compressed matrix whose rows do not end where its edges do")
    seen[order] = True
    if not seen.all():
        raise Corrupt(f"{path}: a compressed matrix with an edge twice")
    rows: NDArray[np.int64] = np.empty(len(indices), np.int64)
    cols: NDArray[np.int64] = np.empty(len(indices), np.int64)
    rows[order] = np.repeat(np.arange(matrix.rows), np.diff(indptr))
    cols[order] = indices
    return rows, cols
