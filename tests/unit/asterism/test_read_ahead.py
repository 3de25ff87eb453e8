"""Tests of prefetching and rejects: order, errors, bounds, and leftovers on disk."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism.formats import BadRow
from asterism.ingest.bulk_load import RejectsFile
from asterism.ingest.read_ahead import ReadAhead
from asterism_proto.errors import InvalidRequest

BAD = BadRow(file="a.csv", row=3, column="id", value="x,y", reason="an id is an integer")


def test_items_come_in_order() -> None:
    with ReadAhead(iter(range(100))) as items:
        assert list(items) == list(range(100))


def test_an_error_is_raised_where_its_item_would_come() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise InvalidRequest("row 2")

    received = []
    with pytest.raises(InvalidRequest, match="row 2"), ReadAhead(failing()) as items:
        received.extend(items)
    assert received == [1]


def test_read_ahead_is_bounded_and_stops_on_exit() -> None:
    produced: list[int] = []
    enough = threading.Event()

    def counting() -> Iterator[int]:
        for i in range(1000):
            produced.append(i)
            if i == 3:
                enough.set()
            yield i

    with ReadAhead(counting(), depth=2) as items:
        assert next(items) == 0
        assert enough.wait(HANG_S)
    assert len(produced) == 4
    assert not [thread for thread in threading.enumerate() if thread.name == "asterism-read-ahead"]


def test_first_bad_row_is_refused_with_its_location() -> None:
    with pytest.raises(
        InvalidRequest,
        match=(
            r"a\.csv, row 3, column 'id', value 'x,y': an id is an integer \(1 more in "
            r"the rows after it\)"
        ),
    ):
        RejectsFile(None).record([BAD, BAD])


def test_rejects_are_counted_and_listed_and_none_leave_no_file(tmp_path: Path) -> None:
    rejects = RejectsFile(tmp_path / "rejects.csv")
    rejects.record([])
    rejects.close()
    assert not (tmp_path / "rejects.csv").exists()
    rejects.record([BAD])
    rejects.record([BAD, BAD])
    rejects.close()
    assert rejects.count == 3
    with (tmp_path / "rejects.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["file", "row", "column", "value", "reason"],
            *[["a.csv", "3", "id", "x,y", "an id is an integer"]] * 3,
        ]
