"""The audit of a version: every byte, table, alias row and edge copy of its images, as they are on disk now.

What was published is the measure: checksums, digests, counts, sums to the bit, mixes of edges. The law of every table and
alias row is rebuilt from what draws read, and held against the weights beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import Corrupt
from asterism_proto.times import alike_at_both_ends, seen_as
from graphkit.jit import settled
from graphkit.times import sum_rows
from storaged.build.kernels import audit_table, bits, mix_records
from storaged.build.marks import part_folder
from storaged.build.near import value_bits
from storaged.build.progress import Progress
from storaged.build.table import MAX_DISTANCE, WEIGHT, BlockSums
from storaged.build.task import Total
from storaged.build.timed import first_untimely, time_bits
from storaged.reread import law
from storaged.reread.indexes import check_edge_index, check_index, check_near
from storaged.reread.task import EDGE, NODE, Result, Task
from storaged.store.checked import check_files
from storaged.store.image import Adjacency, EdgeImage, NodeImage, PartImage, Table, keyed_columns, open_part, paired, weighed
from storaged.store.ordered import OWN

I64 = NDArray[np.int64]
F32 = NDArray[np.float32]
CHUNK = 1 << 18
"""Rows or slots that a pass holds at once."""
_WORD = (1 << 64) - 1
_WRONG = {
    law.SUM: "the sum of its weights is not the one that is kept",
    law.LAW: "its alias row is not the law of its weights",
    law.EVEN: "it has no alias row though its weights differ",
}


@dataclass(slots=True)
class _Found:
    """What is found of one type, over the parts."""

    element: int
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

    def take(self, total: Total) -> None:
        if total.weight_name == WEIGHT:  # further weights measure the same rows
            self.count += total.count
            self.positive += total.positive
            self.weight += total.weight
        self.table_tv, self.table_rel = max(self.table_tv, total.audit_tv), max(self.table_rel, total.audit_rel)
        self.underflow += total.underflow


@dataclass(slots=True)
class _Books:
    """What the audit of one storaged comes to."""

    totals: list[Total] = field(default_factory=list)
    types: dict[tuple[int, int], _Found] = field(default_factory=dict)
    files_read: int = 0
    bytes_read: int = 0

    def of(self, element: int, type_id: int) -> _Found:
        return self.types.setdefault((element, type_id), _Found(element, type_id))


def audit(task: Task, progress: Progress) -> Result:
    """Audit every part of the task.

    Raises
    ------
    NotFound
        Where an image is not there.
    Corrupt
        At the first thing that is wrong; it names the part, the type, and the file, table or row.
    """
    books = _Books()
    images = {part: _image(task, part) for part in task.parts}
    for image in images.values():
        progress.expect(_checks(image) + _passes(image))
    for part, image in images.items():
        progress.phase(f"checksums of part {part}")
        folder = part_folder(task.build, part)
        _checked(folder, image, progress, books)
        for type_id in range(len(task.schema.node_types)):
            for weight_name in _names(image.nodes[type_id]):
                _Type(task, image, NODE, type_id, progress, books, weight_name).nodes()
        for type_id in range(len(task.schema.edge_types)):
            for weight_name in _names(image.edges[type_id]):
                _Type(task, image, EDGE, type_id, progress, books, weight_name).edges()
    _all_held(task, books)
    return {
        "totals": [asdict(total) for total in books.totals],
        "images": [{"part": part, "digest": image.digest} for part, image in images.items()],
        "made": {
            "audit": [asdict(found) for _, found in sorted(books.types.items())],
            "files_read": books.files_read,
            "bytes_read": books.bytes_read,
        },
    }


def _all_held(task: Task, books: _Books) -> None:
    """Nothing that was published is passed over in silence."""
    held = {(total.part, total.element, total.type_id, total.weight_name) for total in books.totals}
    for total in task.totals:
        if (total.part, total.element, total.type_id, total.weight_name) not in held:
            raise Corrupt(
                f"part {total.part}, {task.named(total.element, total.type_id)}: weight {total.weight_name!r} was published, but no table of it "
                "was audited; build the version again"
            )


def _image(task: Task, part: int) -> PartImage:
    """A part's image, if it is the one that the version was sealed with."""
    image = open_part(part_folder(task.build, part), verify=False)
    if image.digest != task.images.get(part):
        raise Corrupt(
            f"part {part}: its image has digest {image.digest}, version {task.version} was sealed with {task.images.get(part, '(none)')}; "
            "build the version again"
        )
    return image


def _checks(image: PartImage) -> int:
    """Rows and slots of an image: as many as the pass over its bytes reports."""
    slots = sum(edge.out.nbr.size + (edge.into.nbr.size if edge.into is not None else 0) for edge in image.edges)
    return sum(node.rows for node in image.nodes) + slots


def _passes(image: PartImage) -> int:
    """Rows that the passes over the arrays report, by weights of each name: each copy of an edge twice, and once in its table."""
    rows = sum(node.rows * len(_names(node)) for node in image.nodes)
    for edge in image.edges:
        rows += (3 * edge.out.nbr.size + (2 * edge.into.nbr.size if edge.into is not None else 0)) * len(_names(edge))
    return rows


def _names(of: NodeImage | EdgeImage) -> tuple[str, ...]:
    """The rows' own weights, and the further ones."""
    return (WEIGHT, *of.named)


def _checked(folder: Path, image: PartImage, progress: Progress, books: _Books) -> None:
    """Every byte against its checksum; rows are counted as far as the bytes are read."""
    rows = _checks(image)
    size = max(sum(file.stat().st_size for file in folder.glob("*.bin")), 1)
    read = 0

    def told(chunk: int) -> None:
        nonlocal read
        progress.step(rows * (read + chunk) // size - rows * read // size)
        read += chunk

    files, bytes_read = check_files(folder, told)
    books.files_read += files
    books.bytes_read += bytes_read


class _Type:
    """One type of one part under audit, by weights of one name."""

    def __init__(self, task: Task, image: PartImage, element: int, type_id: int, progress: Progress, books: _Books, weight_name: str) -> None:
        self._task, self._element, self._type_id, self._weight_name = task, element, type_id, weight_name
        self._image = weighed(image, weight_name)
        self._progress, self._books = progress, books
        owner = (task.schema.node_types if element == NODE else task.schema.edge_types)[type_id]
        self._weighted = owner.weighted or weight_name != WEIGHT
        self._where = f"part {image.part}, {task.named(element, type_id)}"

    def nodes(self) -> None:
        """Rows, weights and table of a node type."""
        node = self._image.nodes[self._type_id]
        self._progress.phase(f"part {self._image.part}, {self._task.named(NODE, self._type_id)}")
        live = sum(int(np.count_nonzero(node.live[low : low + CHUNK])) for low in range(0, node.live.size, CHUNK)) if node.live.size else node.rows
        weights = node.weights if self._weighted else None
        found = self._table(node.table, weights, node.rows, node.live)
        self._keyed(node.table, node.ids)
        self._hold(replace(found, count=live))
        name = OWN if self._weight_name == WEIGHT else self._weight_name
        for index in node.indexes:
            check_index(self._where, index, node, live, name)

    def _indexes(self, edge: EdgeImage) -> None:
        name = OWN if self._weight_name == WEIGHT else self._weight_name
        for index in edge.indexes:
            check_edge_index(self._where, index, edge, name)
            for side, near in ((edge.out, index.out), (edge.into, index.into)):
                if side is not None and near is not None:
                    check_near(self._where, index, side, near, name, list(_row_runs(side.indptr)))

    def edges(self) -> None:
        """Both copies of an edge type, their alias rows, and the table."""
        edge, edge_type = self._image.edges[self._type_id], self._task.schema.edge_types[self._type_id]
        self._progress.phase(f"part {self._image.part}, {self._task.named(EDGE, self._type_id)}")
        schema = self._task.schema
        src, dst = (self._image.nodes[schema.node_type_id(name)] for name in (edge_type.src_type, edge_type.dst_type))
        mix_out = self._adjacency(edge.out, src, edge, weighted=self._weighted, incoming=False)
        mix_in = self._adjacency(edge.into, dst, edge, weighted=self._weighted, incoming=True) if edge.into is not None else 0
        slots = edge.out.nbr.size
        found = self._table(edge.table, edge.out.weights if self._weighted else None, slots, np.zeros(0, np.uint8))
        self._hold(replace(found, count=slots, mix_out=mix_out, mix_in=mix_in, count_in=0 if edge.into is None else edge.into.nbr.size))
        self._indexes(edge)

    def _hold(self, found: Total) -> None:
        """Hold what was found against what was published, to the bit."""
        published = self._task.published(found.part, found.element, found.type_id, found.weight_name)
        if published is None:
            raise Corrupt(f"{self._where}: the version's manifest has no total of weight {found.weight_name!r}; build the version again")
        for name in ("count", "positive", "weight", "mix_out", "mix_in", "count_in"):
            if getattr(found, name) != getattr(published, name):
                raise Corrupt(
                    f"{self._where}, weight {found.weight_name!r}: {name} is {getattr(found, name)!r} in the image, "
                    f"{getattr(published, name)!r} was published; build the version again"
                )
        self._books.totals.append(replace(found, dropped=published.dropped))
        self._books.of(self._element, self._type_id).take(found)

    def _keyed(self, table: Table, ids: I64) -> None:
        """Where a table has ids beside its thresholds, both must be what they are elsewhere: draws read the one or the other."""
        if table.keyed.size not in (0, 2 * table.hot.size):
            raise Corrupt(f"{self._where}: {table.keyed.size} words of ids beside {table.hot.size} columns; build the version again")
        for low in range(0, table.keyed.size // 2, CHUNK):
            high = min(low + CHUNK, table.hot.size)
            rows = table.row_of[low:high] if table.row_of.size else slice(low, high)
            if not np.array_equal(table.keyed[2 * low : 2 * high], keyed_columns(table.hot[low:high], ids[rows])):
                raise Corrupt(f"{self._where}: ids beside the alias table from column {low} on are not those of its rows; build the version again")

    def _table(self, table: Table, weights: F32 | None, rows: int, live: NDArray[np.uint8]) -> Total:
        """The table over ``rows`` rows: which rows it has, their sum, and its law."""
        sums, size, lightest, heaviest = BlockSums(), 0, np.inf, 0.0
        for low in range(0, rows, CHUNK):
            here = np.ones(min(CHUNK, rows - low), np.float32) if weights is None else weights[low : low + CHUNK]
            if not (np.isfinite(here).all() and (here >= 0).all()):
                raise Corrupt(f"{self._where}: a weight among rows {low} to {low + here.size - 1} is negative or not finite; build the version again")
            kept = np.flatnonzero((here > 0) & (live[low : low + CHUNK] > 0) if live.size else here > 0)
            columns = table.row_of[size : size + kept.size] if table.row_of.size else np.arange(size, size + kept.size)
            if not np.array_equal(columns, kept + low):
                raise Corrupt(
                    f"{self._where}: the table's columns are not its rows of positive weight, from column {size} on; build the version again"
                )
            if kept.size:
                sums.add(here[kept])
                lightest, heaviest = min(lightest, float(here[kept].min())), max(heaviest, float(here[kept].max()))
            size += kept.size
            self._progress.step(here.size)
        weight = sums.total()
        if (size, weight) != (table.size, table.total) or (table.row_of.size not in (0, size)):
            raise Corrupt(
                f"{self._where}: {size} rows of weight {weight!r} in all, the table says {table.size} of {table.total!r}; build the version again"
            )
        out = np.zeros(3, np.float64)
        if table.hot.size == 0 and lightest < heaviest:
            raise Corrupt(f"{self._where}: its weights differ, from {lightest} to {heaviest}, but it has no alias table; build the version again")
        if table.hot.size:
            if weights is None or not table.hot.size == table.cold.size == size:
                sizes = f"{table.hot.size} and {table.cold.size} columns for {size} rows"
                raise Corrupt(f"{self._where}: an alias table of {sizes}; build the version again")
            audit_table(settled(table.hot), settled(table.cold), settled(table.row_of), settled(weights), np.float64(weight), out)
        if not out[0] <= MAX_DISTANCE:
            raise Corrupt(f"{self._where}: the alias table's law is {out[0]:.3g} away from its weights; build the version again")
        return Total(
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

    def _adjacency(self, side: Adjacency, near: NodeImage, edge: EdgeImage, *, weighted: bool, incoming: bool) -> int:
        """One copy of the edges: its shape, its alias rows; gives the sum of its mixes."""
        slots, name = side.nbr.size, "in-copy" if incoming else "out-copy"
        # Times that are the same at both ends, and features that lie beside the edges, are in the mix of the edges' own weights.
        timed = alike_at_both_ends(self._task.schema, self._type_id) and self._weight_name == WEIGHT
        edge_type = self._task.schema.edge_types[self._type_id]
        beside = [side.near[column] for column in edge_type.indexed] if self._weight_name == WEIGHT else []
        self._shape(side, near.rows, name, weighted=weighted, incoming=incoming)
        mix = 0
        for low in range(0, slots, CHUNK):
            high = min(low + CHUNK, slots)
            rows = np.searchsorted(side.indptr, np.arange(low, high), side="right") - 1
            if not incoming and not np.array_equal(edge.src_row[low:high], rows):
                raise Corrupt(f"{self._where}: among slots {low} to {high - 1} a source's row is not where the edge is; build the version again")
            weight = side.weights[low:high] if weighted else np.ones(high - low, np.float32)
            ids = _ids_of(near, self._image, rows)
            words = [bits(weight), *([time_bits(side.when[low:high])] if timed else [])]
            for word in (*words, *(value_bits(values[low:high], number) for number, values in enumerate(beside))):
                mix += int(mix_records(ids, side.nbr[low:high], side.eid[low:high], word, incoming))
            self._progress.step(high - low)
        if weighted:
            self._alias_rows(side, near, name)
        else:
            self._progress.step(slots)
        self._again(side, name)
        if side.when.size:
            self._times(side, name, weighted=weighted)
        return mix & _WORD

    def _again(self, side: Adjacency, name: str) -> None:
        """What is there twice over must be the same both times: draws read the one or the other."""
        for low in range(0, side.narrow.size, CHUNK):
            if not np.array_equal(side.narrow[low : low + CHUNK], side.nbr[low : low + CHUNK]):
                raise Corrupt(f"{self._where}, {name}: narrow neighbors from slot {low} on are not its neighbors; build the version again")
        for here in (slice(low, low + CHUNK) for low in range(0, side.pairs.size, CHUNK)):
            if not np.array_equal(side.pairs[here], paired(side.nbr[here], side.eid[here])):
                raise Corrupt(f"{self._where}, {name}: pairs from slot {here.start} on are not its neighbors and edges; build the version again")
        if side.packed.size:
            arrays = (settled(array) for array in (side.indptr, side.narrow, side.sums, side.hot, side.packed))
            slot = law.first_unlike(*arrays)
            if slot >= 0:
                raise Corrupt(f"{self._where}, {name}: the packed row of slot {slot} is not its table and its neighbors; build the version again")

    def _times(self, side: Adjacency, name: str, *, weighted: bool) -> None:
        """Whether the order by time is that of the edges' times, and its sums are those of their weights."""
        indptr, when, order, weights = (settled(array) for array in (side.indptr, side.when, side.order, side.weights))
        for low, high in _row_runs(indptr):
            first, end = int(indptr[low]), int(indptr[high])
            wrong, what = int(first_untimely(indptr, np.int64(low), np.int64(high), when, order)), "is not the one of their times"
            if wrong < 0 and weighted:
                sums = np.empty(end - first, np.float64)
                sum_rows(
                    settled(indptr[low : high + 1] - first),
                    np.int64(0),
                    np.int64(high - low),
                    settled(order[first:end] - np.uint32(first)),
                    settled(weights[first:end]),
                    sums,
                )
                unlike = np.flatnonzero(sums != side.time_sums[first:end])
                wrong, what = (first + int(unlike[0]), "has other sums of weights than they have") if unlike.size else (-1, what)
            if wrong >= 0:
                raise Corrupt(f"{self._where}, {name}: the order of its edges at place {wrong} {what}; build the version again")

    def _shape(self, side: Adjacency, rows: int, name: str, *, weighted: bool, incoming: bool) -> None:
        """Whether the arrays of an adjacency fit together: kernels trust them."""
        slots, indptr = side.nbr.size, side.indptr
        fits = indptr.size == rows + 1 and side.eid.size == slots and int(indptr[0]) == 0 and int(indptr[-1]) == slots
        fits = fits and all(bool((np.diff(indptr[low : low + CHUNK + 1]) >= 0).all()) for low in range(0, rows, CHUNK))
        if weighted:
            fits = fits and side.weights.size == slots and side.sums.size == rows and side.hot.size in (0, slots) and side.cold.size == side.hot.size
        timed = bool(seen_as(self._task.schema, self._type_id, incoming=incoming))
        fits = fits and all(side.near[column].size == slots for column in self._task.schema.edge_types[self._type_id].indexed)
        fits = fits and side.when.size == side.order.size == slots * timed and side.time_sums.size == slots * (timed and weighted)
        fits = fits and side.narrow.size in (0, slots) and side.pairs.size in (0, slots)
        fits = fits and side.packed.size == (2 * side.hot.size if side.narrow.size else 0)
        if not fits:
            raise Corrupt(f"{self._where}, {name}: its {rows} rows and {slots} slots do not fit together; build the version again")

    def _alias_rows(self, side: Adjacency, near: NodeImage, name: str) -> None:
        found, wrong = law.fresh()
        even = float(side.weights[0]) if side.weights.size else 0.0
        books = self._books.of(EDGE, self._type_id)
        indptr, weights, sums, hot, cold = (settled(array) for array in (side.indptr, side.weights, side.sums, side.hot, side.cold))
        for low, high in _row_runs(indptr):
            law.audit_rows(indptr[low : high + 1], weights, sums[low:high], hot, cold, even, MAX_DISTANCE, found, wrong)
            if wrong[1]:
                row = low + int(wrong[0])
                node = int(_ids_of(near, self._image, np.array([row], np.int64))[0])
                raise Corrupt(f"{self._where}, {name}: node {node} (row {row}): {_WRONG[int(wrong[1])]}; build the version again")
            self._progress.step(int(side.indptr[high] - side.indptr[low]))
        books.alias_rows += near.rows
        books.row_tv, books.row_rel = max(books.row_tv, float(found[0])), max(books.row_rel, float(found[1]))


def _row_runs(indptr: I64) -> Iterator[tuple[int, int]]:
    """Runs of rows with at most ``CHUNK`` slots and rows each, or one row."""
    low, rows = 0, indptr.size - 1
    while low < rows:
        high = min(int(np.searchsorted(indptr, indptr[low] + CHUNK, side="right")) - 1, low + CHUNK, rows)
        high = max(high, low + 1)
        yield low, high
        low = high


def _ids_of(node: NodeImage, image: PartImage, rows: I64) -> I64:
    """The id of each row."""
    ids: I64 = rows * image.parts + image.part if node.dense else np.asarray(node.ids[rows], np.int64)
    return ids
