"""Audit of a version: every byte, table, alias row and edge copy of its images on disk.

The images are compared with the published manifest: checksums, digests, counts, sums to the bit,
and hashes of edges. The exact distribution of every table and alias row is rebuilt from the arrays
that sampling reads, and compared with the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.time_keys import running_weight_sums
from asterism_graphkit.compile.jit import as_kernel_array
from asterism_model.elements import Element
from asterism_model.partition_stats import PartitionStats
from asterism_model.schema.edge_times import edge_time_dtype, has_symmetric_times
from asterism_model.task_results import TypeAudit
from asterism_proto.errors import Corrupt
from storaged.build.alias_table import MAX_DISTANCE, WEIGHT, BlockSums
from storaged.build.build_kernels import audit_table, mix_records, weight_bits
from storaged.build.completion_records import part_folder
from storaged.build.edge_indexes import value_bits
from storaged.build.progress import ProgressReporter
from storaged.build.time_index import first_unsorted, time_bits
from storaged.store.checksums import check_files
from storaged.store.column_index import OWN_WEIGHT_NAME
from storaged.store.image import (
    AdjacencyImage,
    AliasTable,
    EdgeImage,
    NodeImage,
    PartImage,
    interleave_ids,
    open_part,
    pack_pairs,
    with_weights,
)
from storaged.version_tasks import alias_audit
from storaged.version_tasks.index_audit import check_edge_index, check_index, check_sorted_edges
from storaged.version_tasks.version_task import ResultLine, VersionTask

I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
CHUNK = 1 << 18
"""Number of rows or slots that a pass holds at once."""
_MASK64 = (1 << 64) - 1
_MESSAGES = {
    alias_audit.WRONG_SUM: "the sum of its weights differs from the stored one",
    alias_audit.WRONG_DISTRIBUTION: "its alias row does not match its weights",
    alias_audit.MISSING_TABLE: "it has no alias row although its weights differ",
}


@dataclass(slots=True)
class _TypeAudit:
    """Findings on one type, over all partitions."""

    element: Element
    type_id: int
    count: int = 0
    positive: int = 0
    weight: float = 0.0
    table_tv: float = 0.0
    table_rel: float = 0.0
    alias_rows: int = 0
    row_tv: float = 0.0
    row_rel: float = 0.0
    underflow: int = 0

    def add(self, total: PartitionStats) -> None:
        if total.weight_name == WEIGHT:  # Additional weights cover the same rows.
            self.count += total.count
            self.positive += total.positive
            self.weight += total.weight
        self.table_tv, self.table_rel = (
            max(self.table_tv, total.audit_tv),
            max(self.table_rel, total.audit_rel),
        )
        self.underflow += total.underflow


@dataclass(slots=True)
class _AuditReport:
    """Findings of the audit on one storaged."""

    totals: list[PartitionStats] = field(default_factory=list)
    types: dict[tuple[int, int], _TypeAudit] = field(default_factory=dict)
    files_read: int = 0
    bytes_read: int = 0

    def type_audit(self, element: Element, type_id: int) -> _TypeAudit:
        return self.types.setdefault((element.number, type_id), _TypeAudit(element, type_id))


def audit(task: VersionTask, progress: ProgressReporter) -> ResultLine:
    """Audit every partition of the task.

    Returns
    -------
    dict
        Result of the task: totals, images and findings per type.

    Raises
    ------
    NotFound
        An image is missing.
    Corrupt
        The first fault; the message names the partition, the type, and the file, table or row.
    """
    report = _AuditReport()
    images = {part: _open_image(task, part) for part in task.parts}
    for image in images.values():
        progress.add_total(_checksum_rows(image) + _scan_rows(image))
    for part, image in images.items():
        progress.phase(f"checksums of part {part}")
        folder = part_folder(task.build, part)
        _verify_checksums(folder, image, progress, report)
        for type_id in range(len(task.schema.node_types)):
            for weight_name in _weight_names(image.nodes[type_id]):
                _TypeAuditor(
                    task, image, Element.NODE, type_id, progress, report, weight_name
                ).audit_nodes()
        for type_id in range(len(task.schema.edge_types)):
            for weight_name in _weight_names(image.edges[type_id]):
                _TypeAuditor(
                    task, image, Element.EDGE, type_id, progress, report, weight_name
                ).audit_edges()
    _check_all_audited(task, report)
    return {
        "totals": [total.to_dict() for total in report.totals],
        "images": [{"part": part, "digest": image.digest} for part, image in images.items()],
        "made": {
            "audit": [
                TypeAudit(**asdict(type_audit)).to_dict()
                for _, type_audit in sorted(report.types.items())
            ],
            "files_read": report.files_read,
            "bytes_read": report.bytes_read,
        },
    }


def _check_all_audited(task: VersionTask, report: _AuditReport) -> None:
    """Raise Corrupt if the audit has skipped any published table."""
    audited = {
        (total.part, total.element, total.type_id, total.weight_name) for total in report.totals
    }
    for total in task.totals:
        if (total.part, total.element, total.type_id, total.weight_name) not in audited:
            raise Corrupt(
                f"part {total.part}, {task.type_label(total.element, total.type_id)}: weight "
                f"{total.weight_name!r} was published, but no table of it was audited; build the "
                "version again"
            )


def _open_image(task: VersionTask, part: int) -> PartImage:
    """Open the image of a partition and compare its digest with that of the version."""
    image = open_part(part_folder(task.build, part), verify=False)
    if image.digest != task.images.get(part):
        raise Corrupt(
            f"part {part}: its image has digest {image.digest}: expected "
            f"{task.images.get(part, '(none)')}, as in version {task.version}; build the version "
            "again"
        )
    return image


def _checksum_rows(image: PartImage) -> int:
    """Return the number of rows and slots that the pass over an image's bytes reports."""
    slots = sum(
        edge.outgoing.nbr.size + (edge.incoming.nbr.size if edge.incoming is not None else 0)
        for edge in image.edges
    )
    return sum(node.rows for node in image.nodes) + slots


def _scan_rows(image: PartImage) -> int:
    """Return the number of rows that the passes over the arrays report.

    Each weight name counts: every copy of an edge twice, and once in its table.
    """
    rows = sum(node.rows * len(_weight_names(node)) for node in image.nodes)
    for edge in image.edges:
        rows += (
            3 * edge.outgoing.nbr.size
            + (2 * edge.incoming.nbr.size if edge.incoming is not None else 0)
        ) * len(_weight_names(edge))
    return rows


def _weight_names(image: NodeImage | EdgeImage) -> tuple[str, ...]:
    """Return the names of all weights: the rows' own, then the additional ones."""
    return (WEIGHT, *image.extra_weights)


def _verify_checksums(
    folder: Path, image: PartImage, progress: ProgressReporter, report: _AuditReport
) -> None:
    """Compare every byte with its checksum; report rows in proportion to the bytes read."""
    rows = _checksum_rows(image)
    size = max(sum(file.stat().st_size for file in folder.glob("*.bin")), 1)
    read = 0

    def on_read(chunk: int) -> None:
        nonlocal read
        progress.step(rows * (read + chunk) // size - rows * read // size)
        read += chunk

    files, bytes_read = check_files(folder, on_read)
    report.files_read += files
    report.bytes_read += bytes_read


class _TypeAuditor:
    """Audit of one type of one partition, for the weights of one name."""

    def __init__(
        self,
        task: VersionTask,
        image: PartImage,
        element: Element,
        type_id: int,
        progress: ProgressReporter,
        report: _AuditReport,
        weight_name: str,
    ) -> None:
        self._task, self._element, self._type_id, self._weight_name = (
            task,
            element,
            type_id,
            weight_name,
        )
        self._image = with_weights(image, weight_name)
        self._progress, self._report = progress, report
        types = task.schema.node_types if element is Element.NODE else task.schema.edge_types
        owner = types[type_id]
        self._weighted = owner.weighted or weight_name != WEIGHT
        self._where = f"part {image.part}, {task.type_label(element, type_id)}"

    def audit_nodes(self) -> None:
        """Audit the rows, the weights and the table of a node type."""
        node = self._image.nodes[self._type_id]
        self._progress.phase(
            f"part {self._image.part}, {self._task.type_label(Element.NODE, self._type_id)}"
        )
        live = (
            sum(
                int(np.count_nonzero(node.live[low : low + CHUNK]))
                for low in range(0, node.live.size, CHUNK)
            )
            if node.live.size
            else node.rows
        )
        weights = node.weights if self._weighted else None
        stats = self._audit_table(node.table, weights, node.rows, node.live)
        self._check_keyed(node.table, node.ids)
        self._check_published(replace(stats, count=live))
        name = OWN_WEIGHT_NAME if self._weight_name == WEIGHT else self._weight_name
        for index in node.indexes:
            check_index(self._where, index, node, live, name)

    def _audit_indexes(self, edge: EdgeImage) -> None:
        name = OWN_WEIGHT_NAME if self._weight_name == WEIGHT else self._weight_name
        for index in edge.indexes:
            check_edge_index(self._where, index, edge, name)
            for side, sorted_edges in (
                (edge.outgoing, index.outgoing),
                (edge.incoming, index.incoming),
            ):
                if side is not None and sorted_edges is not None:
                    check_sorted_edges(
                        self._where, index, side, sorted_edges, name, list(_row_ranges(side.indptr))
                    )

    def audit_edges(self) -> None:
        """Audit both copies of an edge type, their alias rows, and the table."""
        edge, edge_type = (
            self._image.edges[self._type_id],
            self._task.schema.edge_types[self._type_id],
        )
        self._progress.phase(
            f"part {self._image.part}, {self._task.type_label(Element.EDGE, self._type_id)}"
        )
        schema = self._task.schema
        src, dst = (
            self._image.nodes[schema.node_type_id(name)]
            for name in (edge_type.src_type, edge_type.dst_type)
        )
        mix_out = self._audit_adjacency(
            edge.outgoing, src, edge, weighted=self._weighted, incoming=False
        )
        mix_in = (
            self._audit_adjacency(edge.incoming, dst, edge, weighted=self._weighted, incoming=True)
            if edge.incoming is not None
            else 0
        )
        slots = edge.outgoing.nbr.size
        stats = self._audit_table(
            edge.table,
            edge.outgoing.weights if self._weighted else None,
            slots,
            np.zeros(0, np.uint8),
        )
        self._check_published(
            replace(
                stats,
                count=slots,
                mix_out=mix_out,
                mix_in=mix_in,
                count_in=0 if edge.incoming is None else edge.incoming.nbr.size,
            )
        )
        self._audit_indexes(edge)

    def _check_published(self, stats: PartitionStats) -> None:
        """Compare the findings with the published totals, to the bit."""
        published = self._task.published_stats(
            stats.part, stats.element, stats.type_id, stats.weight_name
        )
        if published is None:
            raise Corrupt(
                f"{self._where}: the version's manifest has no statistics of weight "
                f"{stats.weight_name!r}; build the version again"
            )
        for name in ("count", "positive", "weight", "mix_out", "mix_in", "count_in"):
            if getattr(stats, name) != getattr(published, name):
                raise Corrupt(
                    f"{self._where}, weight {stats.weight_name!r}: {name} is "
                    f"{getattr(stats, name)!r} in the image: expected "
                    f"{getattr(published, name)!r}, as published; build the version again"
                )
        self._report.totals.append(replace(stats, dropped=published.dropped))
        self._report.type_audit(self._element, self._type_id).add(stats)

    def _check_keyed(self, table: AliasTable, ids: I64) -> None:
        """Compare the interleaved copy of ids and thresholds with the originals.

        Sampling reads one or the other.
        """
        if table.keyed.size not in (0, 2 * table.hot.size):
            raise Corrupt(
                f"{self._where}: found {table.keyed.size} words of ids for {table.hot.size} "
                "columns; build the version again"
            )
        for low in range(0, table.keyed.size // 2, CHUNK):
            high = min(low + CHUNK, table.hot.size)
            rows = table.row_of[low:high] if table.row_of.size else slice(low, high)
            if not np.array_equal(
                table.keyed[2 * low : 2 * high], interleave_ids(table.hot[low:high], ids[rows])
            ):
                raise Corrupt(
                    f"{self._where}: the ids in the alias table differ from those of its rows "
                    f"from column {low} on; build the version again"
                )

    def _audit_table(
        self, table: AliasTable, weights: F32 | None, rows: int, live: NDArray[np.uint8]
    ) -> PartitionStats:
        """Audit the table over ``rows`` rows: its columns, their sum, and its distribution."""
        sums, size, lightest, heaviest = BlockSums(), 0, np.inf, 0.0
        for low in range(0, rows, CHUNK):
            chunk = (
                np.ones(min(CHUNK, rows - low), np.float32)
                if weights is None
                else weights[low : low + CHUNK]
            )
            if not (np.isfinite(chunk).all() and (chunk >= 0).all()):
                raise Corrupt(
                    f"{self._where}: a weight among rows {low} to {low + chunk.size - 1} is "
                    "negative or not finite; build the version again"
                )
            selected = np.flatnonzero(
                (chunk > 0) & (live[low : low + CHUNK] > 0) if live.size else chunk > 0
            )
            columns = (
                table.row_of[size : size + selected.size]
                if table.row_of.size
                else np.arange(size, size + selected.size)
            )
            if not np.array_equal(columns, selected + low):
                raise Corrupt(
                    f"{self._where}: the columns of the table differ from its rows of positive "
                    f"weight from column {size} on; build the version again"
                )
            if selected.size:
                sums.add(chunk[selected])
                lightest, heaviest = (
                    min(lightest, float(chunk[selected].min())),
                    max(heaviest, float(chunk[selected].max())),
                )
            size += selected.size
            self._progress.step(chunk.size)
        weight = sums.total()
        if (size, weight) != (table.size, table.total) or (table.row_of.size not in (0, size)):
            raise Corrupt(
                f"{self._where}: {size} rows of total weight {weight!r}, but the table states "
                f"{table.size} of {table.total!r}; build the version again"
            )
        out = np.zeros(3, np.float64)
        if table.hot.size == 0 and lightest < heaviest:
            raise Corrupt(
                f"{self._where}: its weights differ, from {lightest} to {heaviest}, but it "
                "has no alias table; build the version again"
            )
        if table.hot.size:
            if weights is None or not table.hot.size == table.cold.size == size:
                sizes = f"{table.hot.size} and {table.cold.size} columns for {size} rows"
                raise Corrupt(f"{self._where}: an alias table of {sizes}; build the version again")
            audit_table(
                as_kernel_array(table.hot),
                as_kernel_array(table.cold),
                as_kernel_array(table.row_of),
                as_kernel_array(weights),
                np.float64(weight),
                out,
            )
        if not out[0] <= MAX_DISTANCE:
            raise Corrupt(
                f"{self._where}: the distribution of the alias table differs from the weights by "
                f"{out[0]:.3g}; build the version again"
            )
        return PartitionStats(
            part=self._image.part,
            element=self._element,
            type_id=self._type_id,
            count=size,
            positive=size,
            weight=weight,
            weight_name=self._weight_name,
            audit_tv=float(out[0]),
            audit_rel=float(out[1]),
            underflow=int(out[2]),
        )

    def _audit_adjacency(
        self,
        side: AdjacencyImage,
        local_nodes: NodeImage,
        edge: EdgeImage,
        *,
        weighted: bool,
        incoming: bool,
    ) -> int:
        """Audit one copy of the edges: shape and alias rows. Return the sum of its hashes."""
        slots, name = side.nbr.size, "in-copy" if incoming else "out-copy"
        # Times that are stored at both ends, and features stored with the edges, are part of the
        # hash of the edges' own weights.
        timed = (
            has_symmetric_times(self._task.schema, self._type_id) and self._weight_name == WEIGHT
        )
        edge_type = self._task.schema.edge_types[self._type_id]
        indexed_columns = (
            [side.edge_columns[column] for column in edge_type.indexed]
            if self._weight_name == WEIGHT
            else []
        )
        self._check_shape(side, local_nodes.rows, name, weighted=weighted, incoming=incoming)
        mix = 0
        for low in range(0, slots, CHUNK):
            high = min(low + CHUNK, slots)
            rows = np.searchsorted(side.indptr, np.arange(low, high), side="right") - 1
            if not incoming and not np.array_equal(edge.src_row[low:high], rows):
                raise Corrupt(
                    f"{self._where}: among slots {low} to {high - 1}, the row of a source is not "
                    "where the edge is; build the version again"
                )
            weight = side.weights[low:high] if weighted else np.ones(high - low, np.float32)
            ids = _ids_of(local_nodes, self._image, rows)
            bit_columns = [
                weight_bits(weight),
                *([time_bits(side.when[low:high])] if timed else []),
            ]
            for bit_column in (
                *bit_columns,
                *(
                    value_bits(values[low:high], number)
                    for number, values in enumerate(indexed_columns)
                ),
            ):
                mix += int(
                    mix_records(ids, side.nbr[low:high], side.eid[low:high], bit_column, incoming)
                )
            self._progress.step(high - low)
        if weighted:
            self._audit_alias_rows(side, local_nodes, name)
        else:
            self._progress.step(slots)
        self._check_duplicates(side, name)
        if side.when.size:
            self._check_times(side, name, weighted=weighted)
        return mix & _MASK64

    def _check_duplicates(self, side: AdjacencyImage, name: str) -> None:
        """Compare redundant copies with the originals; sampling reads one or the other."""
        for low in range(0, side.narrow.size, CHUNK):
            if not np.array_equal(side.narrow[low : low + CHUNK], side.nbr[low : low + CHUNK]):
                raise Corrupt(
                    f"{self._where}, {name}: narrow neighbors differ from its neighbors from "
                    f"slot {low} on; build the version again"
                )
        for block in (slice(low, low + CHUNK) for low in range(0, side.pairs.size, CHUNK)):
            if not np.array_equal(side.pairs[block], pack_pairs(side.nbr[block], side.eid[block])):
                raise Corrupt(
                    f"{self._where}, {name}: pairs differ from its neighbors and edges from slot "
                    f"{block.start} on; build the version again"
                )
        if side.packed.size:
            arrays = (
                as_kernel_array(array)
                for array in (side.indptr, side.narrow, side.sums, side.hot, side.packed)
            )
            slot = alias_audit.first_packed_mismatch(*arrays)
            if slot >= 0:
                raise Corrupt(
                    f"{self._where}, {name}: the packed row of slot {slot} differs from its "
                    "table and its neighbors; build the version again"
                )

    def _check_times(self, side: AdjacencyImage, name: str, *, weighted: bool) -> None:
        """Check the order of edges by time, and the prefix sums of their weights."""
        indptr, times, order, weights = (
            as_kernel_array(array) for array in (side.indptr, side.when, side.order, side.weights)
        )
        for low, high in _row_ranges(indptr):
            first, end = int(indptr[low]), int(indptr[high])
            position, fault = (
                int(first_unsorted(indptr, np.int64(low), np.int64(high), times, order)),
                "differs from the order of their times",
            )
            if position < 0 and weighted:
                sums = np.empty(end - first, np.float64)
                running_weight_sums(
                    as_kernel_array(indptr[low : high + 1] - first),
                    np.int64(0),
                    np.int64(high - low),
                    as_kernel_array(order[first:end] - np.uint32(first)),
                    as_kernel_array(weights[first:end]),
                    sums,
                )
                mismatched = np.flatnonzero(sums != side.time_sums[first:end])
                position, fault = (
                    (first + int(mismatched[0]), "has other sums of weights than its edges")
                    if mismatched.size
                    else (-1, fault)
                )
            if position >= 0:
                raise Corrupt(
                    f"{self._where}, {name}: the order of its edges at place {position} "
                    f"{fault}; build the version again"
                )

    def _check_shape(
        self, side: AdjacencyImage, rows: int, name: str, *, weighted: bool, incoming: bool
    ) -> None:
        """Check that the arrays of an adjacency have consistent sizes; kernels rely on it."""
        slots, indptr = side.nbr.size, side.indptr
        fits = (
            indptr.size == rows + 1
            and side.eid.size == slots
            and int(indptr[0]) == 0
            and int(indptr[-1]) == slots
        )
        fits = fits and all(
            bool((np.diff(indptr[low : low + CHUNK + 1]) >= 0).all())
            for low in range(0, rows, CHUNK)
        )
        if weighted:
            fits = (
                fits
                and side.weights.size == slots
                and side.sums.size == rows
                and side.hot.size in (0, slots)
                and side.cold.size == side.hot.size
            )
        timed = bool(edge_time_dtype(self._task.schema, self._type_id, incoming=incoming))
        fits = fits and all(
            side.edge_columns[column].size == slots
            for column in self._task.schema.edge_types[self._type_id].indexed
        )
        fits = (
            fits
            and side.when.size == side.order.size == slots * timed
            and side.time_sums.size == slots * (timed and weighted)
        )
        fits = fits and side.narrow.size in (0, slots) and side.pairs.size in (0, slots)
        fits = fits and side.packed.size == (2 * side.hot.size if side.narrow.size else 0)
        if not fits:
            raise Corrupt(
                f"{self._where}, {name}: {rows} rows and {slots} slots do not match; build the "
                "version again"
            )

    def _audit_alias_rows(self, side: AdjacencyImage, local_nodes: NodeImage, name: str) -> None:
        max_errors, fault = alias_audit.new_outputs()
        equal_weight = float(side.weights[0]) if side.weights.size else 0.0
        type_audit = self._report.type_audit(Element.EDGE, self._type_id)
        indptr, weights, sums, alias_threshold, alias_fraction = (
            as_kernel_array(array)
            for array in (side.indptr, side.weights, side.sums, side.hot, side.cold)
        )
        for low, high in _row_ranges(indptr):
            alias_audit.audit_rows(
                indptr[low : high + 1],
                weights,
                sums[low:high],
                alias_threshold,
                alias_fraction,
                equal_weight,
                MAX_DISTANCE,
                max_errors,
                fault,
            )
            if fault[1]:
                row = low + int(fault[0])
                node = int(_ids_of(local_nodes, self._image, np.array([row], np.int64))[0])
                raise Corrupt(
                    f"{self._where}, {name}: node {node} (row {row}): "
                    f"{_MESSAGES[int(fault[1])]}; build the version again"
                )
            self._progress.step(int(side.indptr[high] - side.indptr[low]))
        type_audit.alias_rows += local_nodes.rows
        type_audit.row_tv, type_audit.row_rel = (
            max(type_audit.row_tv, float(max_errors[0])),
            max(type_audit.row_rel, float(max_errors[1])),
        )


def _row_ranges(indptr: I64) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows, each a single row or at most ``CHUNK`` rows and slots."""
    low, rows = 0, indptr.size - 1
    while low < rows:
        high = min(
            int(np.searchsorted(indptr, indptr[low] + CHUNK, side="right")) - 1, low + CHUNK, rows
        )
        high = max(high, low + 1)
        yield low, high
        low = high


def _ids_of(node: NodeImage, image: PartImage, rows: I64) -> I64:
    """Return the id of each row."""
    ids: I64 = (
        rows * image.parts + image.part if node.dense else np.asarray(node.ids[rows], np.int64)
    )
    return ids
