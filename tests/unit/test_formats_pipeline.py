"""Reading ahead and rejects: order, errors, bounds, and what is left on disk."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism.formats import BadRow
from asterism.ingest.pipeline import Ahead
from asterism.ingest.rejects import Rejects
from asterism_proto.errors import InvalidRequest

BAD = BadRow(file="a.csv", row=3, column="id", value="x,y", reason="an id is a whole number")


def test_items_come_in_order() -> None:
    with Ahead(iter(range(100))) as items:
        assert list(items) == list(range(100))


def test_an_error_is_raised_where_its_item_would_come() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise InvalidRequest("row 2")

    taken = []
    with pytest.raises(InvalidRequest, match="row 2"), Ahead(failing()) as items:
        taken.extend(items)
    assert taken == [1]


def test_no_more_is_read_ahead_than_may_wait_and_leaving_stops_it() -> None:
    made: list[int] = []
    enough = threading.Event()

    def counting() -> Iterator[int]:
        for i in range(1000):
            made.append(i)
            if i == 3:
                enough.set()
            yield i

    with Ahead(counting(), depth=2) as items:
        assert next(items) == 0
        assert enough.wait(HANG_S)
    assert len(made) == 4
    assert not [thread for thread in threading.enumerate() if thread.name == "asterism-read-ahead"]


def test_the_first_bad_row_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match=r"a\.csv, row 3, column 'id', value 'x,y': an id is a whole number \(1 more near by\)"):
        Rejects(None).take([BAD, BAD])


def test_rejects_are_counted_and_listed_and_none_leave_no_file(tmp_path: Path) -> None:
    rejects = Rejects(tmp_path / "rejects.csv")
    rejects.take([])
    rejects.close()
    assert not (tmp_path / "rejects.csv").exists()
    rejects.take([BAD])
    rejects.take([BAD, BAD])
    rejects.close()
    assert rejects.count == 3
    with (tmp_path / "rejects.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["file", "row", "column", "value", "reason"], *[["a.csv", "3", "id", "x,y", "an id is a whole number"]] * 3]
