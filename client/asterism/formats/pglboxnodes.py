"""PGLBox's node files: a type, an id, and slots behind them, which differ from line to line. A block of lines is cut up at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from asterism.foreign import as_name
from asterism.formats import columns, csvlines
from asterism.formats.chunks import BadRow, FeatureValue, Ids, Mask, NodeChunk, pick
from asterism.formats.csvfiles import BLOCK_BYTES, LONGEST_ROW
from asterism.formats.pglboxconfig import Config
from asterism.formats.sieve import why_no_id
from asterism_proto.errors import InvalidRequest
from asterism_proto.schema import Feature

_BETWEEN = r"[:\x20]"
"""What stands between a slot and its values."""
_VALUES = r"[,\x20]+"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A feature that lines of nodes carry."""

    name: str
    """In the files."""
    ntype: str
    """The type that has it; "": every one."""
    feature: Feature


def slots_of(config: Config) -> tuple[Slot, ...]:
    """The features that a configuration names: ``slots``, lists of whole numbers; and Graph4Rec's ``nfeat_info``."""
    found = [Slot(name=name, ntype="", feature=Feature(name=as_name(name), kind="ragged", dtype="int64")) for name in config["slots"]]
    for ntype, name, kind in config["nfeat_info"]:
        if ntype not in config.node_files:
            raise InvalidRequest(f"{config.path}: nfeat_info: no node type {ntype!r}; there are {', '.join(config.node_files)}")
        dtype = "float32" if kind.startswith("float") else "int64"
        feature = Feature(name=as_name(name), kind="bytes") if kind == "string" else Feature(name=as_name(name), kind="ragged", dtype=dtype)
        found.append(Slot(name=name, ntype=ntype, feature=feature))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """Lines that are not blank."""

    numbers: Ids
    """Where they stand, from 1."""
    kinds: pa.Array
    ids: pa.Array
    rest: pa.Array
    """What is behind the id; "" where there is nothing."""
    bad: tuple[BadRow, ...]


class NodeLines:
    """One file, of which the lines of some types are taken and those of others passed over.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        What it is called in messages.
    types : mapping of str to tuple of Slot
        The types to take, each with the features to read.
    """

    def __init__(self, path: Path, label: str, types: Mapping[str, tuple[Slot, ...]]) -> None:
        self._path, self._label, self._types = path, label, types

    def chunks(self, limit: int) -> Iterator[NodeChunk]:
        """The nodes, a block of lines after the other, type by type."""
        for first, data in self._blocks():
            lines = self._lines(first, data)
            bad, nbytes = lines.bad, len(data)
            some = False
            for ntype, slots in self._types.items():
                mine = np.flatnonzero(np.asarray(pc.equal(lines.kinds, ntype)))
                for start in range(0, len(mine), limit):
                    yield self._chunk(ntype, slots, lines, mine[start : start + limit], bad, nbytes)
                    bad, nbytes, some = (), 0, True
            if not some:  # what is bad has to be told all the same
                yield NodeChunk(ntype=next(iter(self._types)), file=self._label, first_row=first, ids=np.zeros(0, np.int64), bad=bad, nbytes=nbytes)

    def _blocks(self) -> Iterator[tuple[int, bytes]]:
        """Whole lines, and the number of the first."""
        line, rest = 1, b""
        with self._path.open("rb") as file:
            while True:
                read = file.read(BLOCK_BYTES)
                data = rest + read
                end = data.rfind(b"\n") + 1 if read else len(data)
                if not end and len(data) > LONGEST_ROW:
                    raise InvalidRequest(f"{self._label}: line {line} is longer than {LONGEST_ROW} bytes")
                if end:
                    yield line, data[:end]
                    line += data.count(b"\n", 0, end)
                rest = data[end:]
                if not read:
                    return

    def _lines(self, first: int, data: bytes) -> _Lines:
        ends = csvlines.line_ends(data)
        offsets = np.concatenate((np.zeros(1, np.int64), ends + 1))
        offsets[-1] = min(offsets[-1], len(data))
        array = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
        text = pc.utf8_rtrim(columns.utf8(array), " \r\n\t")
        there = np.flatnonzero(np.asarray(pc.not_equal(text, "")))
        text = text.take(pa.array(there))
        fields = pc.split_pattern(text, "\t", max_splits=2)
        widths = pc.list_value_length(fields).to_numpy(zero_copy_only=False)
        short = np.flatnonzero(widths < 2)
        bad = tuple(
            BadRow(file=self._label, row=first + int(there[row]), column="", value=text[row].as_py(), reason="expected a type, a tab and an id")
            for row in short.tolist()
        )
        good = np.flatnonzero(widths >= 2)
        starts = (np.cumsum(widths) - widths)[good]
        flat = fields.flatten()
        rest = flat.take(pa.array(np.where(widths[good] > 2, starts + 2, starts)))
        rest = pc.if_else(pa.array(widths[good] > 2), rest, pa.scalar("", rest.type))
        return _Lines(numbers=first + there[good], kinds=flat.take(pa.array(starts)), ids=flat.take(pa.array(starts + 1)), rest=rest, bad=bad)

    def _chunk(self, ntype: str, slots: tuple[Slot, ...], lines: _Lines, rows: Ids, told: tuple[BadRow, ...], nbytes: int) -> NodeChunk:
        numbers, texts = lines.numbers[rows], lines.ids.take(pa.array(rows))
        bad: list[BadRow] = []
        left_out = np.zeros(len(rows), np.bool_)

        def note(column: str, mask: Mask | None, shown: Any, why: Callable[[str], str]) -> None:
            for row in np.flatnonzero(mask & ~left_out).tolist() if mask is not None else ():
                value = shown[row].as_py() or ""
                bad.append(BadRow(file=self._label, row=int(numbers[row]), column=column, value=value, reason=why(value)))
                left_out[row] = True

        ids, wrong = columns.ids(texts)
        note("id", wrong, texts, why_no_id)
        features: dict[str, FeatureValue] = {}
        if slots:
            rest = lines.rest.take(pa.array(rows))
            fields = _Fields(rest)
            note("", fields.odd, rest, lambda value: "expected slot:value behind the id, with tabs between")
            for slot in slots:
                features[slot.feature.name], wrong = fields.feature(slot)
                note(slot.name, wrong, rest, lambda value, slot=slot: f"expected {slot.feature.dtype} values")  # type: ignore[misc]  # a default
        keep = ~left_out
        if left_out.any():
            ids = ids[keep]
            features = {name: pick(value, keep) for name, value in features.items()}
        return NodeChunk(
            ntype=ntype,
            file=self._label,
            first_row=int(numbers[0]),
            ids=ids,
            features=features,
            bad=tuple(sorted([*told, *bad], key=lambda one: one.row)),
            nbytes=nbytes,
        )


class _Fields:
    """What stands behind ids, as fields of rows: a name and values each."""

    def __init__(self, rest: pa.Array) -> None:
        split = pc.split_pattern(rest, "\t")
        self.rows = len(rest)
        fields, parents = split.flatten(), pc.list_parent_indices(split).to_numpy()
        some = np.flatnonzero(np.asarray(pc.not_equal(fields, "")))
        fields, self._parents = fields.take(pa.array(some)), parents[some]
        pairs = pc.split_pattern_regex(fields, _BETWEEN, max_splits=1)
        two = pc.list_value_length(pairs).to_numpy(zero_copy_only=False)
        starts, flat = np.cumsum(two) - two, pairs.flatten()
        self._names = flat.take(pa.array(starts))
        self._values = flat.take(pa.array(np.where(two == 2, starts + 1, starts)))
        self.odd: Mask | None = None
        if (two < 2).any():
            self.odd = np.zeros(self.rows, np.bool_)
            self.odd[self._parents[two < 2]] = True

    def feature(self, slot: Slot) -> tuple[FeatureValue, Mask | None]:
        """The values of one name, row by row in the order in which they stand, and the rows that have others."""
        mine = np.flatnonzero(np.asarray(pc.equal(self._names, slot.name)))
        values, parents = self._values.take(pa.array(mine)), self._parents[mine]
        if slot.feature.kind == "bytes":
            indptr, data = columns.strings(values, len(mine))
            return (_starts(np.bincount(parents, np.diff(indptr), self.rows)), data), None
        lists = pc.split_pattern_regex(values, _VALUES)
        lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
        numbers, wrong = columns.numbers(lists.flatten(), np.dtype(slot.feature.dtype))
        bad: Mask | None = None
        if wrong is not None:
            bad = np.zeros(self.rows, np.bool_)
            bad[np.repeat(parents, lengths)[wrong]] = True
        return (_starts(np.bincount(parents, lengths, self.rows)), numbers), bad


def _starts(lengths: Any) -> Ids:
    """Where each row's values begin."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))
