"""Builds over what earlier versions left: whatever was linked, the bytes are those of a build from nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.kit.building import Built, Op, built
from tests.kit.histories import loads_of, schemas

from asterism_proto.schema import Schema
from storaged.build.marks import Mark
from storaged.store import graph
from storaged.store.engine import RocksEngine
from storaged.store.keys import TABLES
from storaged.store.tables import FAMILIES, STAT


def units_of(made: Built, part: int) -> dict[str, Any]:
    mark = Mark.read(made.output, part)
    assert mark is not None
    return dict(mark.units)


def tables_of(made: Built) -> list[tuple[bytes, bytes]]:
    engine = RocksEngine(made.output / STAT, FAMILIES)
    found = list(engine.scan(TABLES, b"", None))
    engine.close()
    return found


def written(schema: Schema, loads: Sequence[Sequence[Op]], since: int) -> set[str]:
    """The units that loads from ``since`` on may change in some part, by what each operation means."""
    touched: set[str] = set()
    mortal = {op.type_id for ops in loads for op in ops if op.kind == graph.NODE_DELETES}
    for op in (op for ops in loads[since:] for op in ops):
        if op.kind in (graph.NODES, graph.NODE_DELETES):
            name = schema.node_types[op.type_id].name
            touched |= {f"n{op.type_id}{rest}" for rest in ("", ".table", ".features")}
            for e, edge_type in enumerate(schema.edge_types):
                # A node that is deleted or comes back is told to every part, as an end of edges.
                dies = op.type_id in mortal and name in (edge_type.src_type, edge_type.dst_type)
                touched |= {f"e{e}.out", f"e{e}.table"} if dies or name == edge_type.src_type else set()
                touched |= {f"e{e}.in"} if dies or name == edge_type.dst_type else set()
        else:
            touched |= {f"e{op.type_id}.{rest}" for rest in ("out", "in", "table", "features")}
    return touched


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(schemas(), loads_of(), st.data())
def test_a_build_over_any_earlier_version_is_a_build_from_nothing_and_links_what_was_not_written(
    schema: Schema, loads: list[list[Op]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        whole = built(folder, schema, loads, name="whole")
        first = data.draw(st.integers(0, len(loads)))
        earlier = built(folder, schema, loads, name="first", upto=first)
        second = data.draw(st.integers(first, len(loads)))
        between = built(folder, schema, loads, name="second", upto=second, sources=[earlier])
        sources = data.draw(st.sampled_from([[earlier], [between], [between, earlier], [earlier, between]]))
        made = built(folder, schema, loads, name="made", sources=sources)
        assert made.digests == whole.digests
        assert [result.totals for result in made.results] == [result.totals for result in whole.results]
        assert tables_of(made) == tables_of(whole)
        oldest = second if earlier not in sources else first
        untouched = written(schema, loads, oldest)
        for part, result in enumerate(made.results):
            units = units_of(made, part)
            linked = {unit for unit, record in units.items() if record["linked"]}
            assert units.keys() - untouched <= linked
            assert (result.units.linked, result.units.built) == (len(linked), len(units) - len(linked))
            assert (whole.results[part].units.linked, whole.results[part].units.built) == (0, len(units))
            assert result.units.bytes_linked == sum(units[unit]["bytes"] for unit in linked)
        for source in sources:
            shutil.rmtree(source.output)
        assert built(folder, schema, loads, name="made").digests == whole.digests
        assert tables_of(made) == tables_of(whole)
