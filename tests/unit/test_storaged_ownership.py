"""Records of where a graph database belongs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asterism_proto.errors import Conflict, Corrupt
from storaged.ownership import OWNER, Owner, claim

HERE = Owner(cluster="c1", host="h1", space_id=1)


@pytest.mark.parametrize("other", [{"cluster": "c2"}, {"host": "h2"}, {"space_id": 2}])
def test_a_database_of_another_place_is_refused(tmp_path: Path, other: dict[str, Any]) -> None:
    claim(tmp_path / "graph", HERE)
    claim(tmp_path / "graph", HERE)
    elsewhere = replace(HERE, **other)
    with pytest.raises(Conflict) as refused:
        claim(tmp_path / "graph", elsewhere)
    for word in (str(tmp_path / "graph"), f"belongs to {HERE}, not to {elsewhere}", f"remove {tmp_path / 'graph' / OWNER}"):
        assert word in refused.value.message
    (tmp_path / "graph" / OWNER).unlink()
    claim(tmp_path / "graph", elsewhere)


def test_no_flipped_bit_of_a_record_makes_another_owner(tmp_path: Path) -> None:
    claim(tmp_path, HERE)
    whole = (tmp_path / OWNER).read_bytes()
    for bit in range(8 * len(whole)):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        (tmp_path / OWNER).write_bytes(content)
        with pytest.raises(Corrupt, match=str(tmp_path / OWNER)):
            claim(tmp_path, HERE)
