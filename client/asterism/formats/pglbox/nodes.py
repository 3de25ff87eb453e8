"""PGLBox's node files: lines of a type, an id and slots, which vary from line to line.

A block of lines is split at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism.formats import columns, csv_lines
from asterism.formats.chunks import BadRow, FeatureValue, Ids, Mask, NodeChunk, select_rows
from asterism.formats.csv_files import BLOCK_BYTES, MAX_ROW_BYTES
from asterism.formats.pglbox.config import Config
from asterism.formats.row_validation import id_error
from asterism.formats.text_files import TextFile
from asterism.name_conversion import as_name
from asterism_model.schema import Feature
from asterism_proto.errors import InvalidRequest

_NAME_SEPARATOR = r"[:\x20]"
"""Separator of a slot's name and its values."""
_VALUE_SEPARATOR = r"[,\x20]+"
_PAIRS_FIELD = "s"
"""Field of Graph4Rec with the values of all slots, as ``s 1:583,2:697``."""
_PAIRS = r"^[^:,\s]+:-?[0-9]+(,[^:,\s]+:-?[0-9]+)*,?$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Feature in the lines of nodes."""

    name: str
    """Name in the files."""
    ntype: str
    """Node type that has the feature; "" for all types."""
    feature: Feature


def slots_of(config: Config) -> tuple[Slot, ...]:
    """Return the features of a configuration.

    These are the ``slots``, lists of integers, and the ``nfeat_info`` of Graph4Rec.
    """
    slots = [
        Slot(name=name, ntype="", feature=Feature(name=as_name(name), kind="ragged", dtype="int64"))
        for name in config["slots"]
    ]
    for ntype, name, kind in config["nfeat_info"]:
        if ntype not in config.node_files:
            raise InvalidRequest(
                f"{config.path}: nfeat_info with {ntype!r}: expected a node type, one of "
                f"{', '.join(config.node_files)}"
            )
        dtype = "float32" if kind.startswith("float") else "int64"
        feature = (
            Feature(name=as_name(name), kind="bytes")
            if kind == "string"
            else Feature(name=as_name(name), kind="ragged", dtype=dtype)
        )
        slots.append(Slot(name=name, ntype=ntype, feature=feature))
    return tuple(slots)


def _has_pairs_field(slots: tuple[Slot, ...]) -> bool:
    """Return True if values of the configuration's ``slots`` may stand in Graph4Rec's field.

    They do not if a slot has the field's name, or the field is declared as numbers.
    """
    return any(not slot.ntype for slot in slots) and all(
        slot.name != _PAIRS_FIELD or (slot.ntype and slot.feature.kind == "bytes") for slot in slots
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParsedLines:
    """Nonblank lines, split into columns."""

    numbers: Ids
    """Line numbers, from 1."""
    kinds: pa.Array
    ids: pa.Array
    rest: pa.Array
    """Text after the id; empty if there is none."""
    bad: tuple[BadRow, ...]


class NodeLines:
    """Reader of one file, which yields the lines of some types and skips the others.

    Parameters
    ----------
    path : Path
        File of nodes.
    label : str
        Name of the file in messages.
    types : mapping of str to tuple of Slot
        Types to read, each with its features.
    """

    def __init__(self, path: Path, label: str, types: Mapping[str, tuple[Slot, ...]]) -> None:
        self._path, self._label, self._types = path, label, types

    def chunks(self, limit: int) -> Iterator[NodeChunk]:
        """Yield the nodes, block by block and type by type, at most ``limit`` per chunk."""
        for first, data in self._blocks():
            lines = self._lines(first, data)
            bad_rows, nbytes = lines.bad, len(data)
            has_rows = False
            for ntype, slots in self._types.items():
                type_rows = np.flatnonzero(np.asarray(pc.equal(lines.kinds, ntype)))
                for start in range(0, len(type_rows), limit):
                    yield self._chunk(
                        ntype, slots, lines, type_rows[start : start + limit], bad_rows, nbytes
                    )
                    bad_rows, nbytes, has_rows = (), 0, True
            if not has_rows:  # an empty chunk reports the bad rows
                yield NodeChunk(
                    ntype=next(iter(self._types)),
                    file=self._label,
                    first_row=first,
                    ids=np.zeros(0, np.int64),
                    bad=bad_rows,
                    nbytes=nbytes,
                )

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Yield blocks of complete lines, with the number of the first line."""
        line, incomplete = 1, b""
        with TextFile(self._path, self._label) as file:
            while True:
                new_data = file.read(BLOCK_BYTES)
                data = incomplete + new_data
                end = data.rfind(b"\n") + 1 if new_data else len(data)
                if not end and len(data) > MAX_ROW_BYTES:
                    raise InvalidRequest(
                        f"{self._label}: line {line} is longer than {MAX_ROW_BYTES} bytes"
                    )
                if end:
                    yield line, data[:end]
                    line += data.count(b"\n", 0, end)
                incomplete = data[end:]
                if not new_data:
                    return

    def _lines(self, first: int, data: bytes) -> _ParsedLines:
        ends = csv_lines.line_ends(data)
        offsets = np.concatenate((np.zeros(1, np.int64), ends + 1))
        offsets[-1] = min(offsets[-1], len(data))
        array = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        )
        text = pc.utf8_rtrim(columns.to_utf8(array), " \r\n\t")
        non_empty = np.flatnonzero(np.asarray(pc.not_equal(text, "")))
        text = text.take(pa.array(non_empty))
        fields = pc.split_pattern(text, "\t", max_splits=2)
        widths = pc.list_value_length(fields).to_numpy(zero_copy_only=False)
        too_short = np.flatnonzero(widths < 2)
        bad_rows = tuple(
            BadRow(
                file=self._label,
                row=first + int(non_empty[row]),
                column="",
                value=text[row].as_py(),
                reason="expected a type, a tab and an id",
            )
            for row in too_short.tolist()
        )
        complete = np.flatnonzero(widths >= 2)
        starts = (np.cumsum(widths) - widths)[complete]
        flat = fields.flatten()
        slot_texts = flat.take(pa.array(np.where(widths[complete] > 2, starts + 2, starts)))
        slot_texts = pc.if_else(
            pa.array(widths[complete] > 2), slot_texts, pa.scalar("", slot_texts.type)
        )
        return _ParsedLines(
            numbers=first + non_empty[complete],
            kinds=flat.take(pa.array(starts)),
            ids=flat.take(pa.array(starts + 1)),
            rest=slot_texts,
            bad=bad_rows,
        )

    def _chunk(
        self,
        ntype: str,
        slots: tuple[Slot, ...],
        lines: _ParsedLines,
        rows: Ids,
        bad_lines: tuple[BadRow, ...],
        nbytes: int,
    ) -> NodeChunk:
        line_numbers, texts = lines.numbers[rows], lines.ids.take(pa.array(rows))
        bad_rows: list[BadRow] = []
        is_bad = np.zeros(len(rows), np.bool_)

        def record(
            column: str, mask: Mask | None, texts: Any, reason: Callable[[str], str]
        ) -> None:
            for row in np.flatnonzero(mask & ~is_bad).tolist() if mask is not None else ():
                value = texts[row].as_py() or ""
                bad_rows.append(
                    BadRow(
                        file=self._label,
                        row=int(line_numbers[row]),
                        column=column,
                        value=value,
                        reason=reason(value),
                    )
                )
                is_bad[row] = True

        ids, bad_mask = columns.parse_ids(texts)
        record("id", bad_mask, texts, id_error)
        features: dict[str, FeatureValue] = {}
        if slots:
            slot_texts = lines.rest.take(pa.array(rows))
            fields = _SlotFields(slot_texts)
            record(
                "",
                fields.has_unpaired,
                slot_texts,
                lambda value: "expected slot:value after the id, separated by tabs",
            )
            if _has_pairs_field(slots):
                record(
                    _PAIRS_FIELD,
                    fields.unpack(declared=any(slot.name == _PAIRS_FIELD for slot in slots)),
                    slot_texts,
                    lambda value: "expected slot:value pairs, separated by commas",
                )
            for slot in slots:
                features[slot.feature.name], bad_mask = fields.feature(slot)
                record(
                    slot.name,
                    bad_mask,
                    slot_texts,
                    lambda value, slot=slot: (  # type: ignore[misc]  # mypy does not type a default
                        f"expected {slot.feature.dtype} values"
                    ),
                )
        good = ~is_bad
        if is_bad.any():
            ids = ids[good]
            features = {name: select_rows(value, good) for name, value in features.items()}
        return NodeChunk(
            ntype=ntype,
            file=self._label,
            first_row=int(line_numbers[0]),
            ids=ids,
            features=features,
            bad=tuple(sorted([*bad_lines, *bad_rows], key=lambda bad_row: bad_row.row)),
            nbytes=nbytes,
        )


class _SlotFields:
    """Fields after the ids: each has a row, a name and values."""

    def __init__(self, slot_texts: pa.Array) -> None:
        split = pc.split_pattern(slot_texts, "\t")
        self.rows = len(slot_texts)
        fields, parents = split.flatten(), pc.list_parent_indices(split).to_numpy()
        non_empty = np.flatnonzero(np.asarray(pc.not_equal(fields, "")))
        fields, self._parents = fields.take(pa.array(non_empty)), parents[non_empty]
        self._names, self._values, unpaired = _split_pairs(fields, _NAME_SEPARATOR)
        self.has_unpaired = self._rows_of(unpaired)

    def _rows_of(self, fields: Mask | None) -> Mask | None:
        """Return a mask of the rows of some fields."""
        if fields is None or not fields.any():
            return None
        mask = np.zeros(self.rows, np.bool_)
        mask[self._parents[fields]] = True
        return mask

    def unpack(self, *, declared: bool) -> Mask | None:
        """Add the pairs of Graph4Rec's field as fields; return a mask of rows that have others.

        Without a declaration of the field in the configuration, other content is passed over.
        """
        is_field = np.asarray(pc.equal(self._names, _PAIRS_FIELD))
        has_pairs = np.asarray(pc.match_substring_regex(self._values, _PAIRS)) & is_field
        selected = np.flatnonzero(has_pairs)
        pairs = pc.split_pattern(self._values.take(pa.array(selected)), ",")
        names, values, _ = _split_pairs(pairs.flatten(), ":")
        bad_mask = self._rows_of(is_field & ~has_pairs) if declared else None
        fields = selected[pc.list_parent_indices(pairs).to_numpy()]
        parents = self._parents[fields]
        # Pairs stand where their field does, so that the values of a slot keep their order.
        order = np.argsort(np.concatenate((np.arange(len(self._parents)), fields)), kind="stable")
        self._names = pa.concat_arrays([self._names, names]).take(pa.array(order))
        self._values = pa.concat_arrays([self._values, values]).take(pa.array(order))
        self._parents = np.concatenate((self._parents, parents))[order]
        return bad_mask

    def feature(self, slot: Slot) -> tuple[FeatureValue, Mask | None]:
        """Return the values of one slot in row order, and a mask of rows with invalid values."""
        selected = np.flatnonzero(np.asarray(pc.equal(self._names, slot.name)))
        values, parents = self._values.take(pa.array(selected)), self._parents[selected]
        if slot.feature.kind == "bytes":
            indptr, data = columns.parse_strings(values, len(selected))
            return (_row_starts(np.bincount(parents, np.diff(indptr), self.rows)), data), None
        lists = pc.split_pattern_regex(values, _VALUE_SEPARATOR)
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        numbers, bad_items = columns.parse_numbers(lists.flatten(), np.dtype(slot.feature.dtype))
        bad_mask: Mask | None = None
        if bad_items is not None:
            bad_mask = np.zeros(self.rows, np.bool_)
            bad_mask[np.repeat(parents, lengths)[bad_items]] = True
        return (_row_starts(np.bincount(parents, lengths, self.rows)), numbers), bad_mask


def _split_pairs(fields: pa.Array, separator: str) -> tuple[pa.Array, pa.Array, Mask]:
    """Return the names and values of fields, and a mask of fields without a separator."""
    pairs = pc.split_pattern_regex(fields, separator, max_splits=1)
    item_counts = pc.list_value_length(pairs).to_numpy(zero_copy_only=False)
    starts, flat = np.cumsum(item_counts) - item_counts, pairs.flatten()
    return (
        flat.take(pa.array(starts)),
        flat.take(pa.array(np.where(item_counts == 2, starts + 1, starts))),
        item_counts < 2,
    )


def _row_starts(lengths: Any) -> Ids:
    """Return the offsets of the rows' values."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
