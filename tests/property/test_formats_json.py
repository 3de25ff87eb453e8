"""Incremental JSON reading gives the same as parsing the whole text, for any block size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from asterism.formats.euler import json_arrays
from asterism.formats.euler.json_arrays import ArrayPosition, read_elements
from asterism_proto.errors import InvalidRequest

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(codec="utf-8")),
)
VALUES = st.recursive(
    SCALARS,
    lambda some: (
        st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=3), some, max_size=3)
    ),
    max_leaves=6,
)
LAYOUTS = st.fixed_dictionaries(
    {"indent": st.sampled_from([None, 0, 3]), "ensure_ascii": st.booleans()}
)
FILES = st.dictionaries(
    st.text(st.characters(codec="utf-8"), max_size=4),
    VALUES | st.lists(VALUES, max_size=5),
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(array_kinds=FILES, layout=LAYOUTS, block=st.integers(1, 40))
def test_elements_match_the_file_and_lists_can_be_resumed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    array_kinds: dict[str, Any],
    layout: dict[str, Any],
    block: int,
) -> None:
    monkeypatch.setattr(json_arrays, "BLOCK_BYTES", block)
    path = tmp_path / "any.json"
    text = json.dumps(array_kinds, **layout)
    path.write_text(text, encoding="utf-8", newline="")
    positions: dict[str, ArrayPosition] = {}
    found = list(read_elements(path, positions))
    lists = {name: value for name, value in array_kinds.items() if isinstance(value, list)}
    assert [(element.array, element.value) for element in found] == [
        (name, value) for name, values in lists.items() for value in values
    ]
    assert set(positions) == set(lists)
    for name, values in lists.items():
        reread = list(read_elements(path, array=name, position=positions[name]))
        assert [element.value for element in reread] == values
        assert reread == [element for element in found if element.array == name], (
            "lines and bytes too"
        )
    lines = text.split("\n")
    for element in found:
        first = json.dumps(element.value, ensure_ascii=layout["ensure_ascii"])[0]
        assert (
            lines[element.line - 1].lstrip().startswith(first)
            or layout["indent"] is None
            or f"[{first}" in lines[element.line - 1]
        )
    assert sum(element.nbytes for element in found) <= path.stat().st_size


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(array_kinds=FILES.filter(bool), cut=st.integers(1, 10_000))
def test_truncated_text_is_refused(tmp_path: Path, array_kinds: dict[str, Any], cut: int) -> None:
    data = json.dumps(array_kinds, ensure_ascii=False).encode()
    path = tmp_path / "cut.json"
    path.write_bytes(data[: cut % len(data)])
    with pytest.raises(InvalidRequest, match=r"cut\.json, line \d+: "):
        list(read_elements(path))
