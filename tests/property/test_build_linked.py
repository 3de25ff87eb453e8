"""Incremental builds over earlier versions give the bytes of a full build."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kit.building import BuildResult, Op, run_build
from tests.kit.histories import loads_of, schemas

from asterism_model.schema import Schema
from storaged.build.completion_records import CompletedPart
from storaged.store import block_store
from storaged.store.alias_table_store import FAMILIES, STAT_FOLDER
from storaged.store.engine import RocksEngine
from storaged.store.keys import TABLES


def units_of(build: BuildResult, part: int) -> dict[str, Any]:
    completed_part = CompletedPart.read(build.output, part)
    assert completed_part is not None
    return dict(completed_part.units)


def read_tables(build: BuildResult) -> list[tuple[bytes, bytes]]:
    engine = RocksEngine(build.output / STAT_FOLDER, FAMILIES)
    entries = list(engine.scan(TABLES, b"", None))
    engine.close()
    return entries


def possibly_changed_units(schema: Schema, loads: Sequence[Sequence[Op]], since: int) -> set[str]:
    """Return the units that the loads from index `since` on may change in some partition."""
    touched: set[str] = set()
    deleted_types = {
        op.type_id for ops in loads for op in ops if op.kind == block_store.NODE_DELETES
    }
    for op in (op for ops in loads[since:] for op in ops):
        if op.kind in (block_store.NODES, block_store.NODE_DELETES):
            name = schema.node_types[op.type_id].name
            touched |= {f"n{op.type_id}{suffix}" for suffix in ("", ".table", ".features")}
            for e, edge_type in enumerate(schema.edge_types):
                # Deleted and revived nodes are sent to every partition, because edges anywhere may
                # end there.
                has_deletes = op.type_id in deleted_types and name in (
                    edge_type.src_type,
                    edge_type.dst_type,
                )
                touched |= (
                    {f"e{e}.out", f"e{e}.table"}
                    if has_deletes or name == edge_type.src_type
                    else set()
                )
                touched |= {f"e{e}.in"} if has_deletes or name == edge_type.dst_type else set()
        else:
            touched |= {f"e{op.type_id}.{suffix}" for suffix in ("out", "in", "table", "features")}
    return touched


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(schemas(), loads_of(), st.data())
def test_build_over_earlier_versions_equals_a_full_build(
    schema: Schema, loads: list[list[Op]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        full_build = run_build(folder, schema, loads, name="whole")
        first = data.draw(st.integers(0, len(loads)))
        earlier_build = run_build(folder, schema, loads, name="first", commit=first)
        second = data.draw(st.integers(first, len(loads)))
        middle_build = run_build(
            folder, schema, loads, name="second", commit=second, sources=[earlier_build]
        )
        sources = data.draw(
            st.sampled_from(
                [
                    [earlier_build],
                    [middle_build],
                    [middle_build, earlier_build],
                    [earlier_build, middle_build],
                ]
            )
        )
        new_build = run_build(folder, schema, loads, name="made", sources=sources)
        assert new_build.digests == full_build.digests
        assert [result.totals for result in new_build.results] == [
            result.totals for result in full_build.results
        ]
        assert read_tables(new_build) == read_tables(full_build)
        oldest = second if earlier_build not in sources else first
        changed = possibly_changed_units(schema, loads, oldest)
        for part, result in enumerate(new_build.results):
            units = units_of(new_build, part)
            linked = {unit for unit, record in units.items() if record["linked"]}
            assert units.keys() - changed <= linked
            assert (result.units.linked, result.units.built) == (
                len(linked),
                len(units) - len(linked),
            )
            assert (
                full_build.results[part].units.linked,
                full_build.results[part].units.built,
            ) == (0, len(units))
            assert result.units.bytes_linked == sum(units[unit]["bytes"] for unit in linked)
        for source in sources:
            shutil.rmtree(source.output)
        assert run_build(folder, schema, loads, name="made").digests == full_build.digests
        assert read_tables(new_build) == read_tables(full_build)
