"""Tests of records of the owner of a graph database."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asterism_proto.errors import Conflict, Corrupt
from storaged.store.database_identity import OWNER_FILE, DatabaseOwner, claim

FIRST_OWNER = DatabaseOwner(cluster="c1", host="h1", space_id=1)


@pytest.mark.parametrize("other", [{"cluster": "c2"}, {"host": "h2"}, {"space_id": 2}])
def test_database_of_another_owner_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    claim(tmp_path / "graph", FIRST_OWNER)
    claim(tmp_path / "graph", FIRST_OWNER)
    other_owner = replace(FIRST_OWNER, **other)
    with pytest.raises(Conflict) as error:
        claim(tmp_path / "graph", other_owner)
    for text in (
        str(tmp_path / "graph"),
        f"belongs to {FIRST_OWNER}, not to {other_owner}",
        f"remove {tmp_path / 'graph' / OWNER_FILE}",
    ):
        assert text in error.value.message
    (tmp_path / "graph" / OWNER_FILE).unlink()
    claim(tmp_path / "graph", other_owner)


def test_any_flipped_bit_makes_a_record_corrupt(tmp_path: Path) -> None:
    claim(tmp_path, FIRST_OWNER)
    record = (tmp_path / OWNER_FILE).read_bytes()
    for bit in range(8 * len(record)):
        content = bytearray(record)
        content[bit // 8] ^= 1 << bit % 8
        (tmp_path / OWNER_FILE).write_bytes(content)
        with pytest.raises(Corrupt, match=str(tmp_path / OWNER_FILE)):
            claim(tmp_path, FIRST_OWNER)
