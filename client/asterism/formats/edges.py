"""Edges of plain files: ends looked up, repeats left out, rows counted together, ways back and self-loops added."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from asterism.formats import sieve
from asterism.formats.chunks import Array, EdgeChunk, Exists, Features, FeatureValue, Ids, Mask, Weights, bounded, only
from asterism.formats.keys import Keys, self_loops
from asterism.formats.repeats import repeated_pairs
from asterism.formats.sieve import Sieve, sieved
from asterism.formats.spec import EdgeSpec, FeatureSpec
from asterism.formats.tables import Batch, Table, spans
from asterism_proto.errors import InvalidRequest

MAX_AGGREGATED = 50_000_000
"""Rows of an edge type that are counted together: they are in memory."""

Taken = tuple[Ids, Ids, Weights | None, Features]


class Surroundings(Protocol):
    """What edges ask of the source that they are part of."""

    @property
    def chunk_rows(self) -> int:
        """Rows of a chunk at most."""

    @property
    def tables(self) -> Mapping[str, Table]:
        """The files of each type."""

    def limit(self, features: tuple[FeatureSpec, ...]) -> int:
        """Rows of a batch."""

    def keys(self, ntype: str) -> Keys | None:
        """The names of a type's nodes, where they are known by name."""

    @property
    def salt(self) -> int | None:
        """What ids of names are made with; None where ids are whole numbers."""

    def counted(self, ntype: str) -> int | None:
        """n, where the nodes of a type are known to be 0 .. n - 1."""

    def nodes_of(self, ntype: str) -> Iterator[Ids]:
        """The ids of one type, chunk by chunk."""


def edge_type(source: Surroundings, edge: EdgeSpec, exists: Exists | None) -> Iterator[EdgeChunk]:
    """Every chunk of an edge type, each followed by its way back."""
    repeats = np.zeros(0, np.int64)
    if edge.edges == "unique" and edge.aggregate is None:
        repeats = repeated_pairs(_pairs(source, edge))
    chunks = _read(source, edge, exists, repeats)
    if edge.aggregate is not None:
        chunks = _aggregated(source, edge, chunks)
    looped: list[Ids] = []
    for whole in chunks:
        for chunk in bounded(whole):
            yield chunk
            if edge.self_loops and edge.edges == "unique":
                looped.append(chunk.src[chunk.src == chunk.dst])
            if len(chunk) and (edge.reverse is not None or edge.symmetry):
                yield _turned(edge, chunk)
    if edge.self_loops:
        yield from _loops(source, edge, np.sort(np.concatenate(looped)) if looped else np.zeros(0, np.int64))


def _turned(edge: EdgeSpec, chunk: EdgeChunk) -> EdgeChunk:
    src, _, dst = edge.name.split(":")
    etype = edge.name if edge.symmetry else f"{dst}:{edge.reverse}:{src}"
    ends = {"src": "dst", "dst": "src"}
    features = {ends.get(name, name): value for name, value in chunk.features.items()}  # names of ends, where these are created
    turned = replace(chunk, etype=etype, src=chunk.dst, dst=chunk.src, features=features, bad=(), nbytes=0)
    # A self-loop is its own way back within a type.
    return only(turned, turned.src != turned.dst) if edge.symmetry else turned


def _batches(source: Surroundings, edge: EdgeSpec) -> Iterator[Batch]:
    src, _, dst = edge.name.split(":")
    ends = [
        (name, pa.int64() if source.keys(end) is None and source.salt is None else pa.string()) for name, end in ((edge.src, src), (edge.dst, dst))
    ]
    yield from source.tables[edge.name].batches(sieve.wanted(ends, edge.weight, edge.features), source.limit(edge.features))


def _taker(source: Surroundings, edge: EdgeSpec) -> Callable[[Batch, Sieve], Taken]:
    src_type, _, dst_type = edge.name.split(":")
    salt = source.salt
    ends = ((edge.src, src_type, source.keys(src_type)), (edge.dst, dst_type, source.keys(dst_type)))

    def take(batch: Batch, found: Sieve) -> Taken:
        weights, features = sieve.read_weights(found, edge.weight), sieve.read_features(found, edge.features)
        if salt is not None:
            (src, src_names), (dst, dst_names) = (sieve.read_names(found, column, salt) for column, _, _ in ends)
            called: Features = {"src": src_names, "dst": dst_names} if edge.missing == "create" else {}
            return src, dst, weights, {**called, **features}
        src, dst = (_end(found, column, ntype, keys) for column, ntype, keys in ends)
        return src, dst, weights, features

    return take


def _end(found: Sieve, column: str, ntype: str, keys: Keys | None) -> Ids:
    if keys is None:
        return sieve.read_ids(found, column)
    ids, unknown = keys.ids(found.batch.column(column))
    found.note(column, unknown, lambda value: f"no node of type {ntype!r} has this name" if value else "the name is missing")
    return ids


def _note_strangers(source: Surroundings, edge: EdgeSpec, found: Sieve, src: Ids, dst: Ids, exists: Exists | None) -> None:
    """Note the rows with an end that is no node."""
    if edge.missing == "create":
        return
    src_type, _, dst_type = edge.name.split(":")
    for column, ntype, ids in ((edge.src, src_type, src), (edge.dst, dst_type, dst)):
        count = source.counted(ntype)
        if count is not None:
            strange: Mask = ids >= count
        elif exists is not None and len(ids):
            strange = ~exists(ntype, ids)
        else:
            continue
        if strange.any():
            found.note(column, strange, lambda value, ntype=ntype: f"there is no such node of type {ntype!r}")  # type: ignore[misc]  # mypy does not type a lambda's default


def _read(source: Surroundings, edge: EdgeSpec, exists: Exists | None, repeats: Ids) -> Iterator[EdgeChunk]:
    take = _taker(source, edge)
    row = 0
    for batch in _batches(source, edge):
        (src, dst, weights, features), found = sieved(batch, take)
        _note_strangers(source, edge, found, src, dst, exists)
        if len(repeats):
            places = row + (np.arange(batch.rows) if batch.ordinals is None else batch.ordinals)
            at = np.minimum(np.searchsorted(repeats, places), len(repeats) - 1)
            again = repeats[at] == places
            found.note(f"{edge.src}, {edge.dst}", again if again.any() else None, lambda value: "the edge is there already, and edges are unique")
        keep = found.keep
        yield EdgeChunk(
            etype=edge.name,
            file=batch.file,
            first_row=batch.first_row,
            src=src if keep is None else src[keep],
            dst=dst if keep is None else dst[keep],
            weights=weights if keep is None or weights is None else weights[keep],
            features=sieve.kept(keep, features),
            bad=found.rows(),
            nbytes=batch.nbytes,
        )
        row += batch.size


def _pairs(source: Surroundings, edge: EdgeSpec) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Places and ends of the readable rows; with symmetry a pair is the same both ways."""
    take = _taker(source, edge)
    row = 0
    for batch in _batches(source, edge):
        (src, dst, _, _), found = sieved(batch, take)
        places = row + (np.arange(batch.rows) if batch.ordinals is None else batch.ordinals)
        keep = found.keep
        if keep is not None:
            places, src, dst = places[keep], src[keep], dst[keep]
        yield (places, np.minimum(src, dst), np.maximum(src, dst)) if edge.symmetry else (places, src, dst)
        row += batch.size


def _aggregated(source: Surroundings, edge: EdgeSpec, chunks: Iterator[EdgeChunk]) -> Iterator[EdgeChunk]:
    """Rows with the same ends as one edge whose weight is their number, or the sum of theirs. Bad rows pass by."""
    held: list[tuple[Ids, Ids, Array]] = []
    rows, file = 0, ""
    for chunk in chunks:
        file = file or chunk.file
        rows += len(chunk)
        if rows > MAX_AGGREGATED:
            raise InvalidRequest(
                f"edge type {edge.name!r}: {MAX_AGGREGATED:,} rows can be aggregated, there are more; count them before, and give the `weight` column"
            )
        src, dst = (np.minimum(chunk.src, chunk.dst), np.maximum(chunk.src, chunk.dst)) if edge.symmetry else (chunk.src, chunk.dst)
        held.append((src, dst, np.ones(len(chunk)) if chunk.weights is None else chunk.weights.astype(np.float64)))
        none = np.zeros(0, np.int64)
        yield replace(chunk, src=none, dst=none, weights=np.zeros(0, np.float32), features={})
    if not held:
        return
    table = pa.table({name: np.concatenate([part[i] for part in held]) for i, name in enumerate(("src", "dst", "weight"))})
    held.clear()
    table = table.group_by(["src", "dst"], use_threads=False).aggregate([("weight", "sum")]).sort_by([("src", "ascending"), ("dst", "ascending")])
    src, dst, weight = (table.column(name).to_numpy() for name in ("src", "dst", "weight_sum"))
    for start, stop in spans(len(src), source.chunk_rows):
        if stop > start:
            yield EdgeChunk(
                etype=edge.name,
                file=f"{file} (aggregated)",
                first_row=start,
                src=src[start:stop],
                dst=dst[start:stop],
                weights=weight[start:stop].astype(np.float32),
            )


def _loops(source: Surroundings, edge: EdgeSpec, looped: Ids) -> Iterator[EdgeChunk]:
    """An edge from every node of the type to itself, where there is none yet or several may be."""
    ntype = edge.name.split(":")[0]
    weighted = edge.weight is not None or edge.aggregate is not None
    row = 0
    for ids in self_loops(source.nodes_of(ntype), looped):
        features: dict[str, FeatureValue] = {}
        for spec in edge.features:
            empty = (np.zeros(len(ids) + 1, np.int64), np.zeros(0, spec.feature.dtype if spec.feature.kind == "ragged" else np.uint8))
            features[spec.feature.name] = np.zeros((len(ids), *spec.feature.shape), spec.feature.dtype) if spec.feature.kind == "dense" else empty
        yield EdgeChunk(
            etype=edge.name,
            file=f"(self-loops of {ntype})",
            first_row=row,
            src=ids,
            dst=ids,
            weights=np.ones(len(ids), np.float32) if weighted else None,
            features=features,
        )
        row += len(ids)
