"""File readers, compared with plain Python for any text, split points and chunk sizes."""

from __future__ import annotations

import csv
import io
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asterism.formats import columns
from asterism.formats.chunks import NodeChunk, select_rows, slice_rows, split_to_limit
from asterism.formats.csv_files import CsvOptions, CsvTable
from asterism.formats.dgl.column_files import ColumnFiles, ColumnReader
from asterism.formats.duplicate_pairs import find_repeated_pairs
from asterism.formats.rmat import rmat
from asterism.formats.row_validation import read_batch, read_ids, read_weights

FIELD = st.sampled_from(
    [
        "0",
        "7",
        "12",
        " 5",
        "-3",
        "x",
        "",
        "\\N",
        "1.5",
        "nan",
        "inf",
        "9223372036854775807",
        "9223372036854775808",
        "1e3",
        "ü",
        'a"b',
        "a,b",
    ]
)
LINE = st.lists(FIELD, min_size=1, max_size=3)


def id_of(text: str) -> int | None:
    stripped = text.strip()
    return int(stripped) if stripped.isdecimal() and int(stripped) < 1 << 63 else None


def weight_of(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(np.float32(value)) and value >= 0 else None


@settings(max_examples=150, deadline=None)
@given(
    lines=st.lists(LINE, max_size=30),
    block=st.integers(8, 200),
    limit=st.integers(1, 7),
    end=st.booleans(),
    crlf=st.booleans(),
)
def test_csv_rows_are_accepted_or_refused_as_in_plain_python(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[list[str]],
    block: int,
    limit: int,
    end: bool,
    crlf: bool,
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n" if crlf else "\n").writerows(lines)
    text = buffer.getvalue() if end else buffer.getvalue().rstrip("\r\n")
    path = tmp_path_factory.mktemp("csv") / "rows.csv"
    path.write_bytes(text.encode())

    good: list[tuple[int, np.float32]] = []
    bad: list[int] = []
    for number, line in enumerate(csv.reader(io.StringIO(text, newline="")), 1):
        if not line:
            continue
        id_, weight = (id_of(line[0]), weight_of(line[1])) if len(line) == 2 else (None, None)
        if id_ is None or weight is None:
            bad.append(number)
        else:
            good.append((id_, np.float32(weight)))

    table = CsvTable(
        [(path, "rows.csv")],
        CsvOptions(header=False, columns=("id", "w"), nulls=("", "\\N")),
        block_bytes=block,
    )
    accepted: list[tuple[int, np.float32]] = []
    refused: list[int] = []
    for batch in table.batches({"id": pa.int64(), "w": pa.float32()}, limit):
        assert batch.size <= limit
        (ids, weights), bad_rows = read_batch(
            batch, lambda batch, sieve: (read_ids(sieve, "id"), read_weights(sieve, "w"))
        )
        assert weights is not None
        keep = slice(None) if bad_rows.good_mask is None else bad_rows.good_mask
        accepted.extend(zip(ids[keep].tolist(), weights[keep], strict=True))
        refused.extend(row.row for row in bad_rows.bad_rows())
        assert len(bad_rows.bad_positions()) == len(bad_rows.bad_rows())
    assert accepted == good
    assert refused == bad


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 2**63 - 1, -(2**63) + 1]))
)
def test_integers_are_the_same_from_text_and_typed(values: list[int]) -> None:
    text = pa.array([str(value) for value in values], pa.string())
    numbers, bad = columns.parse_numbers(text, np.dtype(np.int64))
    # The text parser rejects only -2^63, which no column of ids, weights or features holds.
    is_minimum = np.array([value == -(2**63) for value in values], np.bool_)
    assert (np.zeros(len(values), np.bool_) if bad is None else bad).tolist() == is_minimum.tolist()
    assert numbers[~is_minimum].tolist() == [value for value in values if value != -(2**63)]


@given(st.lists(st.floats(width=32)), st.sampled_from(["float32", "float64"]))
def test_floats_are_the_same_from_text_and_typed(values: list[float], dtype: str) -> None:
    numbers, bad = columns.parse_numbers(
        pa.array([repr(value) for value in values], pa.string()), np.dtype(dtype)
    )
    assert bad is None
    assert np.array_equal(numbers, np.array(values, dtype), equal_nan=True)


@given(st.lists(st.lists(st.integers(-5, 10**12), max_size=5)), st.sampled_from([" ", "|", "::"]))
def test_lists_in_text_round_trip(rows: list[list[int]], separator: str) -> None:
    text = pa.array([separator.join(map(str, row)) for row in rows], pa.string())
    indptr, values, bad = columns.parse_lists(text, np.dtype(np.int64), separator)
    assert bad is None
    assert [values[a:b].tolist() for a, b in pairwise(indptr)] == rows


@given(st.lists(st.none() | st.binary(max_size=6)), st.integers(0, 3))
def test_bytes_round_trip_from_any_slice(rows: list[bytes | None], start: int) -> None:
    rest = rows[start:]
    indptr, values = columns.parse_strings(
        pa.array(rows, pa.binary()).slice(min(start, len(rows))), len(rest)
    )
    assert [bytes(values[a:b]) for a, b in pairwise(indptr)] == [row or b"" for row in rest]


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1), st.data())
def test_picked_and_cut_rows_of_lists_are_those_rows(
    rows: list[list[int]], data: st.DataObject
) -> None:
    lengths = np.array([len(row) for row in rows])
    value = (
        np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))),
        np.array([item for row in rows for item in row], np.int64),
    )

    def as_lists(feature: Any) -> list[list[int]]:
        return [feature[1][a:b].tolist() for a, b in pairwise(feature[0])]

    keep = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), np.bool_
    )
    assert as_lists(select_rows(value, keep)) == [
        row for row, is_kept in zip(rows, keep, strict=True) if is_kept
    ]
    order = np.array(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)), np.int64)
    assert as_lists(select_rows(value, order)) == [rows[i] for i in order]
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    assert as_lists(slice_rows(value, start, stop)) == rows[start:stop]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=40), st.integers(1, 2000))
def test_bounded_chunks_hold_every_row_once_within_the_limit(
    lengths: list[int], limit: int
) -> None:
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    chunk = NodeChunk(
        ntype="a",
        file="f",
        first_row=3,
        ids=np.arange(len(lengths)),
        features={"x": (indptr, np.zeros(indptr[-1], np.uint8))},
        nbytes=1001,
    )
    parts = list(split_to_limit(chunk, limit))
    assert np.concatenate([part.ids for part in parts]).tolist() == chunk.ids.tolist()
    assert sum(part.nbytes for part in parts) == 1001
    for part in parts:
        ends, values = part.features["x"]
        assert part.first_row == 3 + part.ids[0]
        assert len(part) == 1 or part.ids.nbytes + ends.nbytes + values.nbytes <= limit


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=60),
    st.integers(1, 20),
    st.integers(1, 30),
)
def test_repeats_are_all_but_the_first_of_each_pair(
    pairs: list[tuple[int, int]], chunk: int, in_memory: int
) -> None:
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    positions = np.arange(len(rows)) * 3 + 1
    chunks = [
        (positions[i : i + chunk], rows[i : i + chunk, 0], rows[i : i + chunk, 1])
        for i in range(0, len(rows), chunk)
    ]
    expected = [int(position) for i, position in enumerate(positions) if pairs[i] in pairs[:i]]
    assert find_repeated_pairs(chunks, in_memory=in_memory).tolist() == expected


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.lists(st.integers(1, 9), max_size=20),
    st.integers(1, 6),
)
def test_column_is_independent_of_file_and_read_sizes(
    tmp_path_factory: pytest.TempPathFactory, files: list[int], takes: list[int], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("series")
    values = np.arange(sum(files) * 2, dtype=np.int32).reshape(-1, 2)
    for i, part in enumerate(np.split(values, np.cumsum(files)[:-1])):
        np.save(folder / f"{i}.npy", part)
    reader = ColumnReader(
        ColumnFiles(
            [(folder / f"{i}.npy", f"{i}.npy") for i in range(len(files))], {"name": "numpy"}
        ),
        limit,
    )
    offset = 0
    for take in takes:
        take = min(take, len(values) - offset)
        assert np.array_equal(reader.read(take).values, values[offset : offset + take])
        offset += take
    reader.read(len(values) - offset)
    reader.finish()


@settings(deadline=None)  # the first example may compile the kernel
@given(
    st.integers(0, 2**63),
    st.integers(1, 50),
    st.integers(1, 50),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_generated_edges_do_not_depend_on_range_bounds(
    seed: int, sources: int, targets: int, first: int, second: int
) -> None:
    src, dst = rmat(seed, 1, 0, first + second, sources=sources, targets=targets)
    second_range = rmat(seed, 1, first, second, sources=sources, targets=targets)
    assert np.array_equal(src[first:], second_range[0])
    assert np.array_equal(dst[first:], second_range[1])
    assert ((src >= 0) & (src < sources) & (dst >= 0) & (dst < targets)).all()


def test_generated_edges_follow_the_rmat_distribution() -> None:
    src, dst = rmat(7, 0, 0, 200_000, sources=2, targets=2)
    shares = np.bincount(src * 2 + dst, minlength=4) / len(src)
    assert np.allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.005)
    degrees = np.sort(
        np.bincount(rmat(7, 0, 0, 200_000, sources=4096, targets=4096)[0], minlength=4096)
    )[::-1]
    assert degrees[:41].sum() > 0.15 * degrees.sum()
