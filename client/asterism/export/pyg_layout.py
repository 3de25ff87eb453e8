"""The partition layout of `torch_geometric.distributed`, from a finished export for DGL, written without torch.

PyG's ids are DGL's type-wise ones; a *global* id counts on over types, as PyG's own `Partitioner` has it. A part has the edges into its
nodes, by destination.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from asterism.export.dgl_files import Column, read_tensors, sliced
from asterism.export.execution import Execution, checked, memory_limit
from asterism.export.held import Held, HeldPart
from asterism.export.layout import Ranges
from asterism.export.plan import Plan
from asterism.export.run import Meter, Run
from asterism.export.seal import MANIFEST, Target, publish, unfinished
from asterism.export.source import Array, Ids
from asterism.export.torch_files import Content, write_torch
from asterism_proto.errors import InvalidRequest, NotFound

_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class PygReport:
    """Partitions in PyG's layout."""

    out: str | Path
    version: int
    parts: int
    nodes: int
    edges: int
    files: int
    seconds: float


def pyg(source: str | Path, out: str | Path, **how: Unpack[Execution]) -> PygReport:
    """Write what `torch_geometric.distributed` loads: `LocalGraphStore.from_partition` and `LocalFeatureStore.from_partition`.

    Parameters
    ----------
    source : str or Path
        The folder of a finished export for DGL, with any assignment.
    out : str or Path
        The folder to make, or an address.
    **how
        `Execution`; all of it is done by this process.

    Returns
    -------
    PygReport

    Raises
    ------
    NotFound, Conflict, InvalidRequest
        Where there is no export; ``out`` is taken; a word does not fit.
    """
    began = time.monotonic()
    checked(how)
    folder = Target.of(source)
    manifest = folder.manifest()
    if folder.path is None:
        raise InvalidRequest(f"{folder.shown}: expected a folder of this machine's, as its files are mapped; bring it here first")
    if manifest is None or "sums" not in manifest:
        raise NotFound(f"{folder.shown}: no {MANIFEST} of an export for DGL; make one with export.dgl first")
    target = Target.of(out)
    words = {"layout": "pyg", "files_of_source": manifest["files"]}
    with unfinished(target, words, overwrite=how.get("overwrite", False), resume=how.get("resume", False), scratch=how.get("scratch")) as place:
        if not place.published:
            if not place.resumed:
                place = place.begin(words)
            run = Run(
                plan=Plan(nodes=(), edges=(), warnings=()),
                version=manifest["version"],
                parts=manifest["parts"],
                trainers=1,
                hops=1,
                formats=(),
                out=place.out,
                address=target.address,
                scratch=place.scratch,
                memory_limit_mib=memory_limit(how),
                progress=how.get("progress"),
                asked=words,
            )
            _Layout(run, Held.of(folder.path, manifest), manifest).write()
        publish(place, target)
    return PygReport(
        out=target.path or target.address,
        version=manifest["version"],
        parts=manifest["parts"],
        nodes=sum(map(sum, manifest["nodes"].values())),
        edges=sum(map(sum, manifest["edges"].values())),
        files=len((target.manifest() or {"files": ()})["files"]),
        seconds=time.monotonic() - began,
    )


class _Layout:
    """One layout under way."""

    def __init__(self, run: Run, held: Held, manifest: Mapping[str, Any]) -> None:
        self._run, self._held, self._manifest = run, held, manifest
        self._typed = len(held.ntypes) > 1 or len(held.etypes) > 1
        counts = held.nodes.counts.sum(axis=0)
        self._node_offsets = (np.cumsum(counts) - counts).tolist()
        counts = held.edges.counts.sum(axis=0)
        self._edge_offsets = (np.cumsum(counts) - counts).tolist()

    def write(self) -> None:
        """All files, the manifest last."""
        meter = Meter(self._run, "parts", self._held.edges.total)
        for number in range(self._run.parts):
            self._run.step(f"pyg-{number}", partial(self._part, number))
            meter.add(int(self._held.edges.counts[number].sum()))
        self._run.step("maps", self._maps)
        self._run.step("manifest", self._seal)

    def _save(self, path: str, content: Content) -> None:
        with self._run.writing(path) as file:
            write_torch(file, content)

    def _etype(self, label: str) -> tuple[str, ...]:
        return tuple(label.split(":"))

    def _part(self, number: int) -> None:
        held = self._held
        part = held.part(number)
        source = held.folder / f"part{number}"
        edges = {label: self._edges(part, place, label) for place, label in enumerate(held.etypes)}
        nodes = {label: self._nodes(number, place) for place, label in enumerate(held.ntypes)}
        for kinds, name in ((nodes, "node"), (edges, "edge")):
            features = read_tensors(source / f"{name}_feat.dgl")
            for label, content in kinds.items():
                found: dict[Content, Content] = {key.split("/")[1]: _of(v) for key, v in features.items() if key.startswith(f"{label}/")}
                content["feats"] = found
        graph: dict[Content, Content] = {self._etype(label): each.pop("graph") for label, each in edges.items()}
        # PyG's store does not load ids of which there are none.
        counts = {label: int(ranges.counts[number, place]) for ranges, labels in self._ranges() for place, label in enumerate(labels)}
        efeat: dict[Content, Content] = {self._etype(label): each for label, each in edges.items() if each["feats"] and counts[label]}
        nfeat: dict[Content, Content] = {label: each for label, each in nodes.items() if counts[label]}
        if not self._typed:
            graph, nfeat, efeat = _only(graph), _only(nfeat), _only(efeat)
        for name, each in (("graph", graph), ("node_feats", nfeat), ("edge_feats", efeat)):
            self._save(f"part_{number}/{name}.pt", each)

    def _ranges(self) -> list[tuple[Ranges, tuple[str, ...]]]:
        return [(self._held.nodes, self._held.ntypes), (self._held.edges, self._held.etypes)]

    def _nodes(self, number: int, place: int) -> dict[Content, Content]:
        counts = self._held.nodes.counts
        first = int(counts[:number, place].sum())
        ids = partial(_numbers, first, first + int(counts[number, place]))
        found: dict[Content, Content] = {"global_id": ids(self._node_offsets[place])}
        return found | {"id": ids(0)} if self._typed else found

    def _edges(self, part: HeldPart, place: int, label: str) -> dict[Content, Content]:
        held, counts = self._held, self._held.edges.counts
        first, count = int(counts[: part.number, place].sum()), int(counts[part.number, place])
        types = held.src_of(label), held.dst_of(label)

        def ends(which: int) -> Iterator[Array]:
            for _, *gids in part.owned(place):
                yield held.typewise(types[which], gids[which])

        row, col = (Column(dtype=np.dtype(np.int64), shape=(count,), pieces=partial(ends, which)) for which in (0, 1))
        size = tuple(int(held.nodes.counts[:, ntype].sum()) for ntype in types)
        ids = partial(_numbers, first, first + count)
        graph: dict[Content, Content] = {"edge_id": ids(self._edge_offsets[place]), "row": row, "col": col, "size": size}
        return {"graph": graph, "global_id": ids(0)}

    def _maps(self) -> None:
        """The part of every node and edge; which stored ids they are; what there is."""
        held = self._held
        for name, ranges, labels, listed in (("node", held.nodes, held.ntypes, held.node_ids), ("edge", held.edges, held.etypes, held.edge_ids)):
            for place, label in enumerate(labels):
                path = f"{name}_map/{'__'.join(self._etype(label))}.pt" if self._typed else f"{name}_map.pt"
                self._save(path, _owners(ranges.counts[:, place]))
                ids = listed(label)
                with self._run.writing(f"{name}_ids/{label}.npy") as file:
                    np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": ids.shape})
                    for piece in sliced(ids, _STEP):
                        file.write(np.ascontiguousarray(piece).view(np.uint8).data)
        meta = {
            "num_parts": held.parts,
            "node_types": list(held.ntypes) if self._typed else None,
            "edge_types": [list(self._etype(label)) for label in held.etypes] if self._typed else None,
            "node_offset": self._node_offsets if self._typed else None,
            "is_hetero": self._typed,
            "is_sorted": True,
        }
        with self._run.writing("META.json") as file:
            file.write(json.dumps(meta, indent=2).encode() + b"\n")

    def _seal(self) -> None:
        kept = ("space", "version", "digest", "sample", "seed", "assign", "parts", "nodes", "edges", "edge_cut")
        content = {
            "format": "pyg",
            **{key: self._manifest[key] for key in kept},
            "asked": self._run.asked,
            "files": {path: told for facts in self._run.done.values() for path, told in sorted(facts["files"].items())},
        }
        with self._run.writing(MANIFEST) as file:
            file.write(json.dumps(content, indent=2).encode() + b"\n")


def _only(content: Mapping[Content, Content]) -> dict[Content, Content]:
    """What a single type has."""
    found: dict[Content, Content] = {}
    for each in content.values():
        assert isinstance(each, Mapping)
        found |= each
    return found


def _of(values: Array) -> Column:
    return Column(dtype=values.dtype, shape=values.shape, pieces=lambda: sliced(values, _STEP))


def _made(count: int, of: Callable[[int, int], Ids]) -> Column:
    """A column of ``count`` numbers that are made while they are written."""

    def pieces() -> Iterator[Array]:
        return (of(at, min(count, at + _STEP)) for at in range(0, count, _STEP))

    return Column(dtype=np.dtype(np.int64), shape=(count,), pieces=pieces)


def _numbers(low: int, high: int, offset: int) -> Column:
    """The numbers from ``low`` to ``high - 1``, plus ``offset``."""
    return _made(high - low, lambda at, until: np.arange(offset + low + at, offset + low + until))


def _owners(counts: Ids) -> Column:
    """The part of each id, so many for each part."""
    ends = np.cumsum(counts)
    return _made(int(ends[-1]), lambda at, until: np.searchsorted(ends, np.arange(at, until), side="right").astype(np.int64))
