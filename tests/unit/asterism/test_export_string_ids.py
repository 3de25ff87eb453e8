"""Tests of string ids of an export: names of several scratch files in one list."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.export.export_schema import ExportPlan, TypePlan
from asterism.export.run_state import ExportRun
from asterism.export.scratch_files import Spool
from asterism.export.string_ids import write_name_list
from asterism_model.string_ids import ID_COLUMN, decode_strings, encode_strings

PORT = TypePlan(name="port", label="port", type_id=0, columns=())


class NamedNodes(SimpleNamespace):
    """Nodes of which id n has n letters."""

    def node_features(
        self, nodes: NDArray[np.int64], names: Sequence[str], ntype: str, *, version: int
    ) -> dict[str, Any]:
        return {ID_COLUMN: encode_strings("names", ["x" * n for n in nodes.tolist()])}


def test_names_of_later_batches_follow_the_earlier_ones(tmp_path: Path) -> None:
    spools = []
    for number, ids in enumerate(([3, 1, 4], [1, 5])):
        spool = Spool(path=tmp_path / f"{number}", dtype=np.dtype(np.int64), piece_bytes=16)
        spool.append(np.array(ids))
        spools.append(spool)
    run = ExportRun(
        graph=NamedNodes(),  # type: ignore[arg-type]  # only names are read
        plan=ExportPlan(nodes=(PORT,), edges=(), warnings=()),
        version=1,
        parts=1,
        trainers=2,
        hops=1,
        formats=(),
        out=tmp_path / "out",
        scratch=tmp_path,
    )
    write_name_list(run, PORT, spools)
    indptr, utf8 = (
        np.load(tmp_path / f"out/node_names/port.{suffix}.npy") for suffix in ("indptr", "utf8")
    )
    assert decode_strings((indptr, utf8)).tolist() == ["xxx", "x", "xxxx", "x", "xxxxx"]
