"""Partition layout of `torch_geometric.distributed`, made from a DGL export without torch.

PyG's ids are DGL's type-wise ids. A *global* id continues the count over types, as in PyG's own
`Partitioner`. A partition has the edges into its nodes, sorted by destination.
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

from asterism.export.dgl_tensor_files import ArrayStream, read_tensors, row_slices
from asterism.export.executors import Execution, check_execution, memory_limit
from asterism.export.export_reader import ExportedGraph, ExportedPart
from asterism.export.export_schema import ExportPlan
from asterism.export.global_ids import GlobalIdRanges
from asterism.export.graph_source import Array, Ids
from asterism.export.lifecycle import MANIFEST, ExportTarget, open_working_folder, publish
from asterism.export.run_state import ExportRun, ProgressMeter
from asterism.export.torch_files import Content, write_torch
from asterism_proto.errors import InvalidRequest, NotFound

_STEP = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class PygReport:
    """Summary of an export in PyG's layout."""

    out: str | Path
    """Folder or address of the partitions."""
    version: int
    """Version of the space that was exported."""
    parts: int
    """Number of partitions."""
    nodes: int
    """Number of nodes."""
    edges: int
    """Number of edges."""
    files: int
    """Number of files."""
    seconds: float
    """Duration in seconds."""


def pyg(source: str | Path, out: str | Path, **execution: Unpack[Execution]) -> PygReport:
    """Convert a finished DGL export to the layout of `torch_geometric.distributed`.

    `LocalGraphStore.from_partition` and `LocalFeatureStore.from_partition` load the result.

    Parameters
    ----------
    source : str or Path
        Local folder of a finished export for DGL, with any assignment.
    out : str or Path
        New folder, or an address as fsspec names it.
    **execution
        Options of `Execution`. All work is done in this process.

    Returns
    -------
    PygReport

    Raises
    ------
    NotFound
        There is no export for DGL at ``source``.
    Conflict
        ``out`` already exists.
    InvalidRequest
        ``source`` is not a local folder, or an option is invalid.

    Examples
    --------
    >>> export.pyg("partitions", "pyg")  # doctest: +SKIP
    """
    started = time.monotonic()
    check_execution(execution)
    folder = ExportTarget.parse(source)
    manifest = folder.manifest()
    if folder.path is None:
        raise InvalidRequest(
            f"{folder.display_name}: expected a local folder, because its files are memory-mapped; "
            "copy it to this machine"
        )
    if manifest is None or "sums" not in manifest:
        raise NotFound(
            f"{folder.display_name}: expected an export for DGL, found no {MANIFEST} of one; write "
            "one with `export dgl`"
        )
    target = ExportTarget.parse(out)
    parameters = {"layout": "pyg", "files_of_source": manifest["files"]}
    with open_working_folder(
        target,
        parameters,
        overwrite=execution.get("overwrite", False),
        resume=execution.get("resume", False),
        scratch=execution.get("scratch"),
    ) as working_folder:
        if not working_folder.published:
            if not working_folder.resumed:
                working_folder = working_folder.begin(parameters)
            run = ExportRun(
                plan=ExportPlan(nodes=(), edges=(), warnings=()),
                version=manifest["version"],
                parts=manifest["parts"],
                trainers=1,
                hops=1,
                formats=(),
                out=working_folder.out,
                address=target.address,
                scratch=working_folder.scratch,
                memory_limit_mib=memory_limit(execution),
                progress=execution.get("progress"),
                parameters=parameters,
            )
            _PygExport(run, ExportedGraph.open(folder.path, manifest), manifest).write()
        publish(working_folder, target)
    return PygReport(
        out=target.path or target.address,
        version=manifest["version"],
        parts=manifest["parts"],
        nodes=sum(map(sum, manifest["nodes"].values())),
        edges=sum(map(sum, manifest["edges"].values())),
        files=len((target.manifest() or {"files": ()})["files"]),
        seconds=time.monotonic() - started,
    )


class _PygExport:
    """Running conversion of one export."""

    def __init__(self, run: ExportRun, export: ExportedGraph, manifest: Mapping[str, Any]) -> None:
        self._run, self._export, self._manifest = run, export, manifest
        self._is_heterogeneous = len(export.ntypes) > 1 or len(export.etypes) > 1
        counts = export.nodes.counts.sum(axis=0)
        self._node_offsets = (np.cumsum(counts) - counts).tolist()
        counts = export.edges.counts.sum(axis=0)
        self._edge_offsets = (np.cumsum(counts) - counts).tolist()

    def write(self) -> None:
        """Write all files, the manifest last."""
        meter = ProgressMeter(self._run, "parts", self._export.edges.total)
        for part in range(self._run.parts):
            self._run.run_step(f"pyg-{part}", partial(self._write_part, part))
            meter.add(int(self._export.edges.counts[part].sum()))
        self._run.run_step("maps", self._write_maps)
        self._run.run_step("manifest", self._write_manifest)

    def _save(self, path: str, content: Content) -> None:
        with self._run.open_output(path) as file:
            write_torch(file, content)

    def _etype(self, label: str) -> tuple[str, ...]:
        return tuple(label.split(":"))

    def _write_part(self, part_number: int) -> None:
        export = self._export
        part = export.part(part_number)
        source = export.folder / f"part{part_number}"
        edges = {
            label: self._edges(part, type_index, label)
            for type_index, label in enumerate(export.etypes)
        }
        nodes = {
            label: self._nodes(part_number, type_index)
            for type_index, label in enumerate(export.ntypes)
        }
        for kinds, name in ((nodes, "node"), (edges, "edge")):
            features = read_tensors(source / f"{name}_feat.dgl")
            for label, content in kinds.items():
                columns: dict[Content, Content] = {
                    key.split("/")[1]: _array_column(v)
                    for key, v in features.items()
                    if key.startswith(f"{label}/")
                }
                content["feats"] = columns
        graph: dict[Content, Content] = {
            self._etype(label): type_content.pop("graph") for label, type_content in edges.items()
        }
        # PyG's store does not load empty id arrays.
        counts = {
            label: int(ranges.counts[part_number, type_index])
            for ranges, labels in self._ranges()
            for type_index, label in enumerate(labels)
        }
        efeat: dict[Content, Content] = {
            self._etype(label): type_content
            for label, type_content in edges.items()
            if type_content["feats"] and counts[label]
        }
        nfeat: dict[Content, Content] = {
            label: type_content for label, type_content in nodes.items() if counts[label]
        }
        if not self._is_heterogeneous:
            graph, nfeat, efeat = (
                _single_type_content(graph),
                _single_type_content(nfeat),
                _single_type_content(efeat),
            )
        for name, type_content in (("graph", graph), ("node_feats", nfeat), ("edge_feats", efeat)):
            self._save(f"part_{part_number}/{name}.pt", type_content)

    def _ranges(self) -> list[tuple[GlobalIdRanges, tuple[str, ...]]]:
        return [
            (self._export.nodes, self._export.ntypes),
            (self._export.edges, self._export.etypes),
        ]

    def _nodes(self, part: int, type_index: int) -> dict[Content, Content]:
        counts = self._export.nodes.counts
        first = int(counts[:part, type_index].sum())
        ids = partial(_numbers, first, first + int(counts[part, type_index]))
        content: dict[Content, Content] = {"global_id": ids(self._node_offsets[type_index])}
        return content | {"id": ids(0)} if self._is_heterogeneous else content

    def _edges(self, part: ExportedPart, type_index: int, label: str) -> dict[Content, Content]:
        export, counts = self._export, self._export.edges.counts
        first, count = (
            int(counts[: part.number, type_index].sum()),
            int(counts[part.number, type_index]),
        )
        types = export.src_type_of(label), export.dst_type_of(label)

        def end_ids(end: int) -> Iterator[Array]:
            for _, *gids in part.owned_edges(type_index):
                yield export.typewise_ids(types[end], gids[end])

        row, col = (
            ArrayStream(dtype=np.dtype(np.int64), shape=(count,), pieces=partial(end_ids, end))
            for end in (0, 1)
        )
        size = tuple(int(export.nodes.counts[:, ntype].sum()) for ntype in types)
        ids = partial(_numbers, first, first + count)
        graph: dict[Content, Content] = {
            "edge_id": ids(self._edge_offsets[type_index]),
            "row": row,
            "col": col,
            "size": size,
        }
        return {"graph": graph, "global_id": ids(0)}

    def _write_maps(self) -> None:
        """Write the partition of every node and edge, their stored ids, and the metadata."""
        export = self._export
        for name, ranges, labels, stored_ids in (
            ("node", export.nodes, export.ntypes, export.node_ids),
            ("edge", export.edges, export.etypes, export.edge_ids),
        ):
            for type_index, label in enumerate(labels):
                path = (
                    f"{name}_map/{'__'.join(self._etype(label))}.pt"
                    if self._is_heterogeneous
                    else f"{name}_map.pt"
                )
                self._save(path, _owners(ranges.counts[:, type_index]))
                ids = stored_ids(label)
                with self._run.open_output(f"{name}_ids/{label}.npy") as file:
                    np.lib.format.write_array_header_1_0(
                        file, {"descr": "<i8", "fortran_order": False, "shape": ids.shape}
                    )
                    for piece in row_slices(ids, _STEP):
                        file.write(np.ascontiguousarray(piece).view(np.uint8).data)
        meta = {
            "num_parts": export.parts,
            "node_types": list(export.ntypes) if self._is_heterogeneous else None,
            "edge_types": [list(self._etype(label)) for label in export.etypes]
            if self._is_heterogeneous
            else None,
            "node_offset": self._node_offsets if self._is_heterogeneous else None,
            "is_hetero": self._is_heterogeneous,
            "is_sorted": True,
        }
        with self._run.open_output("META.json") as file:
            file.write(json.dumps(meta, indent=2).encode() + b"\n")

    def _write_manifest(self) -> None:
        copied_keys = (
            "space",
            "version",
            "digest",
            "sample",
            "seed",
            "assign",
            "parts",
            "nodes",
            "edges",
            "edge_cut",
        )
        content = {
            "format": "pyg",
            **{key: self._manifest[key] for key in copied_keys},
            "asked": self._run.parameters,
            "files": {
                path: file_record
                for facts in self._run.results.values()
                for path, file_record in sorted(facts["files"].items())
            },
        }
        with self._run.open_output(MANIFEST) as file:
            file.write(json.dumps(content, indent=2).encode() + b"\n")


def _single_type_content(content: Mapping[Content, Content]) -> dict[Content, Content]:
    """Merge the content of the only type into one mapping."""
    merged: dict[Content, Content] = {}
    for each in content.values():
        assert isinstance(each, Mapping)
        merged |= each
    return merged


def _array_column(values: Array) -> ArrayStream:
    return ArrayStream(
        dtype=values.dtype, shape=values.shape, pieces=lambda: row_slices(values, _STEP)
    )


def _generated_column(count: int, generate: Callable[[int, int], Ids]) -> ArrayStream:
    """Return a column of ``count`` integers that are generated while they are written."""

    def pieces() -> Iterator[Array]:
        return (generate(start, min(count, start + _STEP)) for start in range(0, count, _STEP))

    return ArrayStream(dtype=np.dtype(np.int64), shape=(count,), pieces=pieces)


def _numbers(low: int, high: int, offset: int) -> ArrayStream:
    """Return the integers from ``low`` to ``high - 1``, plus ``offset``."""
    return _generated_column(
        high - low, lambda start, stop: np.arange(offset + low + start, offset + low + stop)
    )


def _owners(counts: Ids) -> ArrayStream:
    """Return the partition of each id, given the number of ids in each partition."""
    ends = np.cumsum(counts)
    return _generated_column(
        int(ends[-1]),
        lambda start, stop: np.searchsorted(ends, np.arange(start, stop), side="right").astype(
            np.int64
        ),
    )
