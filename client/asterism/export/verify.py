"""Verification of a finished export: each node and edge once, where DGL expects it.

The code shares only the file formats with the writer. It compares the files with each other, and
with the checksums that the manifest has of the rows as read from the graph.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from asterism.export.dgl_tensor_files import read_tensors
from asterism.export.dispatch_to_machines import CollectedExport, collect_export, rebuild_id_lists
from asterism.export.export_reader import ExportedGraph, ExportedPart
from asterism.export.graph_source import Array, Ids, ProgressCallback
from asterism.export.lifecycle import MANIFEST
from asterism.export.row_checksums import Checksums, ids_sum, rows_sum
from asterism.export.string_ids import name_problems
from asterism_proto.errors import AsterismError

_STEP = 1 << 18
_MAX_PROBLEMS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """Result of a verification."""

    out: str
    """Folder, address or template of the export."""
    version: int
    """Version of the space that was exported."""
    parts: int
    """Number of partitions of the export."""
    verified: tuple[int, ...]
    """Partitions that were present: all, or those of one machine."""
    nodes: int
    """Number of nodes of all partitions."""
    edges: int
    """Number of edges of all partitions."""
    files: int
    """Number of files in the manifest."""
    bytes: int
    """Total size of these files in bytes."""
    problems: tuple[str, ...]
    """Errors and their locations; empty if the export is correct."""

    @property
    def ok(self) -> bool:
        """True if no errors were found."""
        return not self.problems


def verify(
    out: str | Path,
    *,
    ip_config: str | Path | None = None,
    progress: ProgressCallback | None = None,
) -> VerifyReport:
    """Read an export for DGL back and verify that it is complete and correct.

    Every file has the size and SHA-256 of the manifest, and there are no other files. Each node and
    edge is owned exactly once, by the partition that the maps name. The ids, flags, owners and
    types of each partition are right. By stored ids, every edge joins the same nodes as in the
    graph. Each partition has exactly the edges and nodes of other partitions that it must hold
    (HALO). Ids map to stored ids and back. Every feature has one row for each node or edge, with
    the bytes that were read. String ids match their numeric ids.

    For a dispatched export, the folder of one machine can be verified alone, as far as this
    concerns its own partitions. All folders together are verified as completely as the original.

    Parameters
    ----------
    out : str or Path
        Folder or address of the export. Files at an address are first copied to a temporary folder.
        With ``{part}`` or ``{host}`` in it: the template that was passed to `dispatch`.
    ip_config : str or Path, optional
        DGL's file of machines, for ``{host}``.
    progress : callable, optional
        Called with (phase, done, total or None).

    Returns
    -------
    VerifyReport
        Counts, and at most 100 errors.

    Raises
    ------
    InvalidRequest
        An address is invalid.
    NotFound
        There is no ``manifest.json`` at an address.
    Corrupt
        The addresses hold partitions of different exports.

    Examples
    --------
    >>> export.verify("partitions").errors  # doctest: +SKIP
    []
    """
    with collect_export(out, ip_config) as collected_export:
        check = _Verification(collected_export, progress)
        check.run()
    manifest = collected_export.manifest
    return VerifyReport(
        out=collected_export.display_name,
        version=manifest["version"],
        parts=manifest["parts"],
        verified=collected_export.parts,
        nodes=sum(map(sum, manifest["nodes"].values())),
        edges=sum(map(sum, manifest["edges"].values())),
        files=len(manifest["files"]),
        bytes=sum(file_record["bytes"] for file_record in manifest["files"].values()),
        problems=tuple(check.problems[:_MAX_PROBLEMS]),
    )


class _Verification:
    """Running verification of one export."""

    def __init__(
        self, collected_export: CollectedExport, progress: ProgressCallback | None
    ) -> None:
        self.folder, self.manifest = collected_export.folder, collected_export.manifest
        self.problems = list(collected_export.damaged_files)
        self._collected = collected_export
        self._progress = progress
        self._sums = {label: Checksums() for label in collected_export.manifest["sums"]}

    def run(self) -> None:
        """Run all checks."""
        self._files()
        export = self._record_failure(
            "the configuration",
            lambda: ExportedGraph.open(
                self.folder, self.manifest, lists=self._collected.lists_folder
            ),
        )
        if export is None:
            return
        self.problems += export.problems
        if self._collected.is_complete and self._collected.lists_folder != self.folder:
            self._record_failure("the original ids", lambda: rebuild_id_lists(export))
        for done, part in enumerate(self._collected.parts, 1):
            self._record_failure(
                f"part {part}", lambda part=part: self._part(export, export.part(part))
            )
            self._report_progress("parts", done, len(self._collected.parts))
        if self._collected.is_complete:
            self._halos(export)
            self._totals()

    def _report_progress(self, phase: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(phase, done, total)

    def _record_failure(self, description: str, function: Any) -> Any:
        try:
            return function()
        except (AsterismError, OSError, KeyError, ValueError, IndexError, TypeError) as error:
            text = (
                error.message
                if isinstance(error, AsterismError)
                else f"{type(error).__name__}: {error}"
            )
            self.problems.append(f"{description} cannot be read: {text}")
            return None

    def _files(self) -> None:
        files: Mapping[str, Any] = self.manifest["files"]
        present = {
            str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()
        } - {MANIFEST}
        self.problems += [f"{path}: missing" for path in sorted(set(files) - present)]
        self.problems += [
            f"{path}: not a file of this export" for path in sorted(present - set(files))
        ]
        done, total = 0, sum(file_record["bytes"] for file_record in files.values())
        for path in sorted(set(files) & present):
            with open(self.folder / path, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = (self.folder / path).stat().st_size
            if (size, digest) != (files[path]["bytes"], files[path]["sha256"]):
                self.problems.append(
                    f"{path}: {size} bytes of sha256 {digest[:12]}..; {files[path]['bytes']} "
                    f"of {files[path]['sha256'][:12]}.. were written"
                )
            done += size
            self._report_progress("bytes", done, total)

    # -- one partition -----------------------------------------------------------------------------

    def _part(self, export: ExportedGraph, part: ExportedPart) -> None:
        self.problems += part.problems()
        part_folder = f"part{part.number}"
        nids, eids = (
            read_tensors(self.folder / part_folder / f"orig_{letter}ids.dgl") for letter in "ne"
        )
        for original, ranges, labels, stored_ids in (
            (nids, export.nodes, export.ntypes, export.node_ids),
            (eids, export.edges, export.etypes, export.edge_ids),
        ):
            counts, first_ids = ranges.counts[part.number], ranges.counts[: part.number].sum(axis=0)
            for type_index, label in enumerate(labels):
                ids = original[label]
                if ids.shape != (counts[type_index],):
                    self.problems.append(
                        f"{part_folder}: {len(ids)} original ids of {label}, of which the "
                        f"part owns {counts[type_index]}"
                    )
                elif self._collected.is_complete and not np.array_equal(
                    ids, stored_ids(label)[first_ids[type_index] : first_ids[type_index] + len(ids)]
                ):
                    self.problems.append(
                        f"{part_folder}: the original ids of {label} are not those of the "
                        "list of all parts"
                    )
        if "names" in self.manifest:
            self.problems += name_problems(
                self.folder / part_folder, nids, self.manifest["names"]["salt"]
            )
        for label in export.ntypes:
            self._add(label, "", nids[label])
        self._features(f"{part_folder}/node_feat.dgl", nids, export.ntypes)
        self._features(f"{part_folder}/edge_feat.dgl", eids, export.etypes)
        for type_index, label in enumerate(export.etypes):
            self._ends(export, part, type_index, label, eids[label])

    def _ends(
        self, export: ExportedGraph, part: ExportedPart, type_index: int, label: str, eids: Ids
    ) -> None:
        """Check the end types of owned edges, and add stored ids to the checksums."""
        for offset, src, dst in part.owned_edges(type_index):
            end_ids = []
            for end_name, gids, ntype in (
                ("source", src, export.src_type_of(label)),
                ("destination", dst, export.dst_type_of(label)),
            ):
                mismatched = np.flatnonzero(export.nodes.types(gids) != ntype)
                if mismatched.size:
                    edge = f"edge {eids[offset + mismatched[0]]} of {label}"
                    self.problems.append(
                        f"part{part.number}: the {end_name} of {edge} is no node of type "
                        f"{export.ntypes[ntype]}"
                    )
                    return
                if self._collected.is_complete:
                    end_ids.append(export.stored_ids(ntype, gids))
            if self._collected.is_complete:
                self._sums[label].add(
                    "", ids_sum(np.asarray(eids[offset : offset + len(src)]), *end_ids)
                )

    def _add(self, label: str, name: str, ids: Ids, values: Array | None = None) -> None:
        for start in range(0, len(ids), _STEP):
            batch = np.asarray(ids[start : start + _STEP])
            self._sums[label].add(
                name,
                ids_sum(batch)
                if values is None
                else rows_sum(batch, values[start : start + _STEP]),
            )

    def _features(self, path: str, original: Mapping[str, Ids], labels: tuple[str, ...]) -> None:
        tensors = read_tensors(self.folder / path)
        columns: Mapping[str, Mapping[str, Any]] = self.manifest["columns"]
        expected_columns = {
            f"{label}/{name}": (label, name, column_type)
            for label in labels
            for name, column_type in columns[label].items()
        }
        trainers = {
            f"{label}/trainer_id"
            for label in labels
            if self.manifest.get("num_trainers_per_machine", 1) > 1
        }
        if set(tensors) != set(expected_columns) | trainers:
            self.problems.append(
                f"{path}: features {sorted(tensors)}; expected "
                f"{sorted(set(expected_columns) | trainers)}"
            )
        for key in set(tensors) & set(expected_columns):
            label, name, (dtype, *shape) = expected_columns[key]
            values, ids = tensors[key], original[label]
            if values.dtype.name != dtype or list(values.shape) != [len(ids), *shape]:
                self.problems.append(
                    f"{path}: {key} is {values.dtype}{list(values.shape)}; expected "
                    f"{dtype}{[len(ids), *shape]}"
                )
            else:
                self._add(label, name, ids, values)

    # -- all partitions together -------------------------------------------------------------------

    def _halos(self, export: ExportedGraph) -> None:
        """Check the edges of other partitions that each partition holds."""
        required = self._record_failure("the edges between parts", export.required_halo_edges)
        for part in range(export.parts if required is not None else 0):
            halo = self._record_failure(
                f"part {part}", lambda part=part: export.part(part).halo_edges()
            )
            if halo is not None and halo != required[part]:
                self.problems.append(
                    f"part{part}: HALO: it holds {halo[0]} edges of other parts, "
                    f"{required[part][0]} it must; they are not the same ones"
                )
            if halo is not None and self.manifest["outer_edges"][part] != halo[0]:
                self.problems.append(
                    f"part{part}: it holds {halo[0]} edges of other parts, the manifest says "
                    f"{self.manifest['outer_edges'][part]}"
                )

    def _totals(self) -> None:
        """Compare the checksums of all rows with those in the manifest."""
        for label, sums in self._sums.items():
            computed = sums.to_dict()
            for name, expected in self.manifest["sums"][label].items():
                if computed.get(name, "0" * 16) != expected:
                    description = (
                        f"rows of {name!r}" if name else "ids, each once, and what they join"
                    )
                    self.problems.append(
                        f"{label}: the {description} are not those that were read from the graph"
                    )
