"""Tests of the sampling routes: their bodies, their arguments and their replies."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from asterism.records import samples
from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import InvalidRequest
from graphd.http import sampling_results
from graphd.http.sampling import OPERATIONS, Operation, call_arguments, node_array
from graphd.http.sampling_requests import SampleNegativesRequest, SampleNeighborsRequest

INTEGERS = Schema(node_types=(NodeType(name="n"),), edge_types=())
RECORDS: dict[str, type] = {
    "NodeSampleView": samples.NodeSample,
    "NodeRowsView": samples.NodeRows,
    "EdgeSampleView": samples.EdgeSample,
    "NeighborSampleView": samples.NeighborSample,
    "FanoutHopView": samples.FanoutHop,
    "FanoutSampleView": samples.FanoutSample,
    "WalkSampleView": samples.WalkSample,
    "VisitSampleView": samples.VisitSample,
    "PageRanksView": samples.PageRanks,
    "AdjacencyView": samples.Adjacency,
    "LayerView": samples.Layer,
    "LayerSampleView": samples.LayerSample,
    "LayerStackView": samples.LayerStack,
    "SubgraphView": samples.Subgraph,
    "GraphLabelsView": samples.GraphLabels,
}


def names(operation: Operation) -> str:
    return operation.method


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
def test_bodies_have_the_arguments_of_the_call(operation: Operation) -> None:
    parameters = dict(list(inspect.signature(operation.call).parameters.items())[1:])
    body = dict(operation.request.model_fields)
    timeout = body.pop("timeout_s")
    assert timeout.default == 30.0
    assert set(body) == set(parameters)
    for name, field in body.items():
        default = parameters[name].default
        if default is not inspect.Parameter.empty:
            assert field.default == default, name


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
def test_the_example_of_a_body_is_valid(operation: Operation) -> None:
    schema = operation.request.model_json_schema()
    (example,) = schema["examples"]
    operation.request.model_validate(example)


@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
def test_every_field_of_a_body_is_described(operation: Operation) -> None:
    properties = operation.request.model_json_schema()["properties"]
    assert [name for name, field in properties.items() if not field.get("description")] == []


def test_excluded_edges_are_typed_in_every_body() -> None:
    """The description of the routes has the types of edges, not just any value."""
    followed = [
        operation
        for operation in OPERATIONS
        if "reverse_types" in inspect.signature(operation.call).parameters
    ]
    assert len(followed) == 11
    for operation in followed:
        properties = operation.request.model_json_schema()["properties"]
        rows, by_type, none = properties["exclude"]["anyOf"]
        assert none == {"type": "null"}
        assert by_type["additionalProperties"] == rows
        edge = rows["items"]
        assert (edge["type"], edge["minItems"], edge["maxItems"]) == ("array", 2, 3)
        assert {kind["type"] for kind in edge["items"]["anyOf"]} == {"integer", "string"}
        reverse, none = properties["reverse_types"]["anyOf"]
        assert reverse["additionalProperties"] == {"type": "string"}


@pytest.mark.parametrize(
    "exclude",
    [
        [[1]],
        [[1, 2, 3, 4]],
        [1, 2],
        {"cites": [1, 2]},
        [[1, 1 << 63]],
        [[1.5, 2]],
        "cites",
        [[1, -2]],
    ],
)
def test_odd_edges_to_exclude_are_refused_by_the_body(exclude: Any) -> None:
    with pytest.raises(ValidationError, match="exclude"):
        SampleNeighborsRequest(nodes=[1], n=1, exclude=exclude)


def with_first_number(value: Any, number: int) -> Any:
    """Return a JSON value in which ``number`` replaces the first number of its lists."""
    if isinstance(value, list) and value:
        return [with_first_number(value[0], number), *value[1:]]
    return number if isinstance(value, int) else value


@pytest.mark.parametrize("number", [1 << 63, 1 << 64, -(1 << 63) - 1, -2])
@pytest.mark.parametrize("operation", OPERATIONS, ids=names)
def test_ids_beyond_int64_are_refused_with_their_place(operation: Operation, number: int) -> None:
    (example,) = operation.request.model_json_schema()["examples"]
    for field in operation.request.NODE_IDS:
        values = [[1, 2]] if field in ("pairs", "exclude") else [1, 2]
        body = {**example, field: with_first_number(example.get(field) or values, number)}
        with pytest.raises(ValidationError) as refused:
            operation.request.model_validate(body)
        places = [error["loc"] for error in refused.value.errors() if error["input"] == number]
        assert places
        assert {place[0] for place in places} == {field}
        assert all(0 in place for place in places)


@pytest.mark.parametrize("name", RECORDS)
def test_replies_have_the_fields_of_the_records(name: str) -> None:
    view = getattr(sampling_results, name)
    assert set(view.model_fields) == {field.name for field in fields(RECORDS[name])}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, "2", "9223372036854775807", -1, "-1"], [1, 2, (1 << 63) - 1, -1, -1]),
        ([], []),
        ([[1, 2], ["3", 4]], [[1, 2], [3, 4]]),
    ],
)
def test_ids_are_integers_or_their_digits(values: list[Any], expected: list[Any]) -> None:
    array = node_array("nodes", values, INTEGERS)
    assert array.dtype == np.int64
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "ann"], r"nodes\[1\]='ann': expected an integer below 2\^63"),
        (["1.5"], r"nodes\[0\]='1.5'"),
        (["-2"], r"nodes\[0\]='-2'"),
        (["9223372036854775808"], r"nodes\[0\]='9223372036854775808'"),
        (["１"], r"nodes\[0\]"),
        ([[1], [2, 3]], r"nodes: expected rows of the same length"),
        ([[1], 2], r"nodes: expected rows of the same length"),
    ],
)
def test_other_ids_are_refused_with_their_position(values: list[Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        node_array("nodes", values, INTEGERS)


def test_excluded_edges_become_columns() -> None:
    body = SampleNeighborsRequest(
        nodes=[1], n=1, exclude={"e": [[5, "6", 7], ["8", 9, "-1"]], "f": []}, seed="7"
    )
    arguments = call_arguments(dict(body), body.NODE_IDS, INTEGERS)
    src, dst, eids = arguments["exclude"]["e"]
    assert (src.tolist(), dst.tolist(), eids.tolist()) == ([5, 8], [6, 9], [7, -1])
    assert arguments["exclude"]["f"] == []
    body = SampleNeighborsRequest(nodes=[1], n=1, exclude=[[5, 6], [1, 2, 3]])
    with pytest.raises(InvalidRequest, match="exclude: expected edges that all have an edge id"):
        call_arguments(dict(body), body.NODE_IDS, INTEGERS)


def test_rows_to_exclude_may_differ_in_length() -> None:
    body = SampleNegativesRequest(pairs=[[1, 2], [3, 4]], n=1, exclude=[[5, "6"], []], seed="7")
    arguments = call_arguments(dict(body), body.NODE_IDS, INTEGERS)
    assert arguments["seed"] == 7
    indptr, ids = arguments["exclude"]
    assert (indptr.tolist(), ids.tolist()) == ([0, 2, 2], [5, 6])
    assert arguments["pairs"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("seed", [-1, 1 << 64, "", "x", "-1", 1.5, True])
def test_a_seed_is_an_integer_of_64_bits(seed: Any) -> None:
    with pytest.raises(ValidationError):
        SampleNeighborsRequest(nodes=[1], n=1, seed=seed)


def test_a_seed_as_text_is_below_2_to_the_64() -> None:
    body = SampleNeighborsRequest(nodes=[1], n=1, seed="99999999999999999999")
    with pytest.raises(InvalidRequest, match="seed=99999999999999999999: expected"):
        call_arguments(dict(body), body.NODE_IDS, INTEGERS)


def test_a_large_sample_is_refused_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_results, "MAX_VALUES", 10)
    ids = np.arange(8)
    sample = samples.NodeSample(nodes=ids, types=ids.astype(np.int32), seed=1, version=1)
    with pytest.raises(InvalidRequest, match="expected at most 10 over HTTP"):
        sampling_results.json_record(sample, None)


def test_seeds_of_replies_are_text() -> None:
    ids = np.array([3])
    sample = samples.NodeSample(
        nodes=ids, types=ids.astype(np.int32), seed=(1 << 64) - 1, version=2
    )
    assert sampling_results.json_record(sample, None) == {
        "nodes": [3],
        "types": [3],
        "probabilities": None,
        "seed": "18446744073709551615",
        "version": 2,
        "token": "",
    }
