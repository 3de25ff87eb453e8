"""Every public call takes odd values with a result or an `AsterismError`, and in bounded time.

Each argument of each call is replaced by each odd value in turn. No TypeError, ValueError, KeyError
or OverflowError of Python, NumPy or protobuf may reach a caller.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest
from tests.kit import cases, euler_graph
from tests.kit.waiting import HANG_S

import asterism
from asterism import AsterismError, Graph, aio
from asterism.euler import Euler

ODD: Mapping[str, Any] = {
    "None": None,
    "nan": float("nan"),
    "inf": float("inf"),
    "2**63": 2**63,
    "-2**63-1": -(2**63) - 1,
    "2**64": 2**64,
    "-5": -5,
    "3": 3,
    "1.5": 1.5,
    "complex": 1j,
    "huge count": 10**9,
    "True": True,
    "numpy's True": np.True_,
    "empty string": "",
    "string": "x",
    "empty bytes": b"",
    "bytes": b"x",
    "object": object(),
    "function": lambda *_: None,
    "[]": [],
    "{}": {},
    "[None]": [None],
    "[nan]": [float("nan")],
    "['a']": ["a"],
    "['a', 1]": ["a", 1],
    "[b'a']": [b"a"],
    "[1, 1]": [1, 1],
    "[-1]": [-1],
    "[1.5]": [1.5],
    "[2**64]": [2**64],
    "[True]": [True],
    "[1j]": [1j],
    "ragged": [[1], [2, 3]],
    "nested": [[[1]]],
    "2-D": np.array([[1, 2], [3, 4]]),
    "0-D": np.array(1),
    "uint64": np.array([2**64 - 1], np.uint64),
    "objects": np.array([1, None], object),
    "records": np.array([(1, 2)], [("a", "i8"), ("b", "i8")]),
    "dates": np.array(["2020-01-01"], "M8[D]"),
    "dict": {"a": 1},
    "dict of types": {"cites": 1, "paper": 1},
    "dict of ids": {1: [1]},
    "set": {1},
}
"""Values by name."""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[asterism.Client]:
    with asterism.open(cases.copy_built_graph(tmp_path_factory.mktemp("odd"))) as opened:
        yield opened


CALLS: Mapping[str, Mapping[str, Any]] = {
    "adjacency": {"rows": [1], "cols": [2], "etypes": "cites"},
    "at": {"version": 1},
    "cluster_batches": {"clusters": {"paper": ([1, 2], [0, 0])}, "q": 1},
    "count_edges": {"etype": "cites"},
    "count_nodes": {"ntype": "paper"},
    "degrees": {"nodes": [1], "etypes": "cites"},
    "delete_edges": {"src": [1], "dst": [2], "etype": "cites"},
    "delete_nodes": {"ids": [50], "ntype": "paper"},
    "edge_batches": {"etype": "cites", "batch_size": 3},
    "edge_features": {"edge_ids": [1], "names": "when", "etype": "writes"},
    "edges_at": {"etype": "cites", "places": [1]},
    "find_nodes": {"ids": [1], "ntype": "paper"},
    "graph_nodes": {"labels": ["person 1"]},
    "induced_subgraph": {"nodes": [1, 2], "etypes": "cites"},
    "link_seeds": {"edges": [[1, 2]], "etype": "cites"},
    "manifest": {},
    "metapaths": {"text": "paper2cites2paper"},
    "multi_hop_neighbors": {"nodes": [1], "metapath": ["cites"]},
    "neighbors": {"nodes": [1], "etypes": "cites"},
    "node_batches": {"ntype": "paper", "batch_size": 3},
    "node_features": {"nodes": [1], "names": "vec", "ntype": "paper"},
    "node_ids": {"names": []},
    "node_names": {"ids": []},
    "node_types": {"ids": [1], "ntype": "paper"},
    "nodes_at": {"ntype": "paper", "places": [1]},
    "personalized_pagerank": {"nodes": [1], "etypes": "cites", "k": 2},
    "query": {"statement": "GO FROM $x OVER cites", "parameters": {"x": [1]}},
    "random_walk": {"nodes": [1], "metapath": ["cites"], "length": 2},
    "replay": {"token": ""},
    "sample_edges": {"n": 2, "etype": "cites"},
    "sample_ego_subgraphs": {"seeds": [1], "fanouts": [2], "etypes": "cites"},
    "sample_fanout": {"nodes": [1], "metapath": ["cites"], "fanouts": [2]},
    "sample_fanout_layerwise": {"nodes": [1], "metapath": ["cites"], "counts": [2]},
    "sample_graph_labels": {"n": 2},
    "sample_hgt": {"seeds": [1], "counts": [2], "etypes": "cites"},
    "sample_labor": {"seeds": [1], "fanouts": [2], "etypes": "cites"},
    "sample_layer": {"nodes": [1], "etypes": "cites", "n": 2},
    "sample_negatives": {"pairs": [[1, 2]], "n": 2, "ntype": "paper"},
    "sample_neighbors": {"nodes": [1], "etypes": "cites", "n": 2},
    "sample_nodes": {"n": 2, "ntype": "paper"},
    "sample_nodes_like": {"src": [1], "n": 2, "ntype": "paper"},
    "sample_pinsage": {"nodes": [1], "metapath": ["cites"], "n": 2, "walks": 2},
    "sample_subgraph": {"seeds": [1], "fanouts": [2], "etypes": "cites"},
    "scan_edges": {"etype": "cites"},
    "scan_nodes": {"ntype": "paper"},
    "top_k_neighbors": {"nodes": [1], "etypes": "cites", "k": 2},
    "upsert_edges": {"src": [2], "dst": [2], "etype": "cites"},
    "upsert_nodes": {"ids": [1], "ntype": "paper"},
    "walk_pairs": {"metapaths": "paper2cites2paper", "walk_length": 2},
    "without_edges": {"exclude": {"cites": ([1], [2])}},
}
"""Valid arguments of every call of a graph, without those that end a graph or start a job."""
NOT_READS = {"build", "close", "pin"}
_EDGES = [[1, 2, 0]]
_SPARSE = {"indices": [[0, 0]], "values": [1], "dense_shape": [1, 1]}
EULER_CALLS: Mapping[str, Mapping[str, Any]] = {
    "sample_node": {"count": 2},
    "sample_node_with_src": {"src_nodes": [1], "count": 2},
    "sample_edge": {"count": 2},
    "sample_graph_label": {"batch_num": 2},
    "get_graph_by_label": {"labels": ["a"]},
    "sample_neighbor": {"nodes": [1], "edge_types": [0], "count": 2},
    "get_top_k_neighbor": {"nodes": [1], "edge_types": [0], "k": 2},
    "get_full_neighbor": {"nodes": [1], "edge_types": [0]},
    "get_sorted_full_neighbor": {"nodes": [1], "edge_types": [0]},
    "sample_fanout": {"nodes": [1], "edge_types": [[0]], "counts": [2]},
    "sample_fanout_with_feature": {
        "nodes": [1],
        "edge_types": [[0]],
        "count": [2],
        "default_node": -1,
        "dense_feature_names": ["f3"],
        "dense_dimensions": [2],
        "sparse_feature_names": ["f1"],
        "sparse_default_values": [0],
    },
    "random_walk": {"nodes": [1], "edge_types": [[0]]},
    "sample_neighbor_layerwise": {"nodes": [[1]], "edge_types": [0], "count": 2},
    "sample_fanout_layerwise": {"nodes": [1], "edge_types": [[0]], "counts": [2]},
    "sample_fanout_layerwise_each_node": {"nodes": [1], "edge_types": [[0], [1]], "counts": [2, 2]},
    "sparse_get_adj": {"nodes": [1], "nb_nodes": [2], "edge_types": [0]},
    "get_multi_hop_neighbor": {"nodes": [1], "edge_types": [[0]]},
    "get_dense_feature": {"nodes": [1], "feature_names": ["f3"], "dimensions": [2]},
    "get_sparse_feature": {"nodes": [1], "feature_names": ["f1"]},
    "get_binary_feature": {"nodes": [1], "feature_names": ["f5"]},
    "get_edge_dense_feature": {"edges": _EDGES, "feature_names": ["f3"], "dimensions": [2]},
    "get_edge_sparse_feature": {"edges": _EDGES, "feature_names": ["f1"]},
    "get_edge_binary_feature": {"edges": _EDGES, "feature_names": ["f5"]},
    "get_node_type": {"nodes": [1]},
    "get_node_type_id": {"types": "1"},
    "get_edge_type_id": {"types": "1"},
    "gen_pair": {"paths": [[1, 2]], "left_win_size": 1, "right_win_size": 1},
    "inflate_idx": {"idx": [0, 1, 0]},
    "sparse_gather": {"gather_idx": [0], **_SPARSE},
    "gather": {"params": [1.0, 2.0], "indices": [1]},
    "scatter_add": {"updates": [1.0], "indices": [0], "size": 2},
    "scatter_max": {"updates": [1.0], "indices": [0], "size": 2},
    "scatter_mean": {"updates": [1.0], "indices": [0], "size": 2},
    "scatter_softmax": {"updates": [1.0], "indices": [0], "size": 2},
    "scatter_": {"op": "add", "updates": [1.0], "indices": [0], "size": 2},
    "run_gql": {"gql": "v(nodes).outV(types).as(nb)", "inputs": {"nodes": [1], "types": [0]}},
}
"""Valid arguments of every operator of Euler."""
CLIENT_CALLS: Mapping[str, Mapping[str, Any]] = {
    "access_limits": {},
    "api_keys": {},
    "create_api_key": {"principal": "alice"},
    "grant": {"principal": "alice", "space": "cases", "role": "reader"},
    "grants": {"principal": "alice"},
    "revoke": {"principal": "alice", "space": "cases"},
    "revoke_api_key": {"key_id": "abcdefghijkl"},
    "set_access_limits": {"principal": "alice", "space": "cases", "calls_per_s": 10.0},
    "create_space": {"name": "cases", "schema": {"nodes": {"n": {}}}, "if_not_exists": True},
    "describe": {"name": "cases"},
    "drop_space": {"name": "none", "if_exists": True},
    "graph": {"name": "cases"},
    "hosts": {},
    "job": {"job_id": 1},
    "jobs": {"space": "cases"},
    "manifest": {"space": "cases"},
    "pins": {"space": "cases"},
    "query": {"statement": "SHOW SPACES"},
    "recover_job": {"job_id": 1},
    "spaces": {},
    "stop_job": {"job_id": 1},
    "submit_job": {"space": "none"},
    "versions": {"space": "cases"},
    "wait": {"job_id": 1, "timeout_s": 1.0},
}
"""Arguments of the calls of a client that neither move files nor end the client."""
STRING_CALLS: Mapping[str, Mapping[str, Any]] = {
    "adjacency": {"rows": ["a"], "cols": ["b"]},
    "delete_nodes": {"ids": ["c"], "ntype": "n"},
    "find_nodes": {"ids": ["a"], "ntype": "n"},
    "node_features": {"nodes": ["a"], "names": "x", "ntype": "n"},
    "node_ids": {"names": ["a"]},
    "node_names": {"ids": [-1]},
    "query": {"statement": "GO FROM $x OVER e", "parameters": {"x": ["a"]}},
    "sample_layer": {"nodes": ["a"], "etypes": "e", "n": 2},
    "sample_negatives": {"pairs": [["a", "b"]], "n": 2, "ntype": "n"},
    "sample_neighbors": {"nodes": ["a"], "etypes": "e", "n": 2},
    "upsert_edges": {"src": ["a"], "dst": ["b"], "etype": "e"},
    "upsert_nodes": {"ids": ["a"], "ntype": "n", "features": {"x": [1]}},
}
"""Calls that take nodes, in a space with strings as ids."""


@pytest.fixture(scope="module")
def strings(client: asterism.Client) -> Graph:
    schema = {"nodes": {"n": {"features": {"x": "int64"}}}, "edges": {"n:e:n": {}}}
    client.create_space("strings", {"ids": "string", "parts": 1, **schema})
    graph = client.graph("strings")
    graph.upsert_nodes(["a", "b"], "n", features={"x": [1, 2]})
    graph.upsert_edges(["a"], ["b"], "e")
    graph.build(timeout_s=HANG_S)
    return graph


def odd_calls(
    call: Callable[..., Any], valid: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a description and the arguments for every argument and odd value of a call."""
    parameters = list(inspect.signature(call).parameters)
    for parameter in parameters:
        if parameter != "self":
            for name, value in ODD.items():
                if (parameter, name) == ("size", "huge count"):
                    continue  # It is valid, and the result would have that size.
                yield f"{parameter}={name}", {**valid, parameter: value}


def outcome(run: Callable[[], Any]) -> BaseException | None:
    """Return the error of a call that is not an `AsterismError`, or of its first item."""
    started = time.monotonic()
    try:
        result = run()
        if isinstance(result, Iterator) or hasattr(result, "state_dict"):
            list(islice(result, 1))
    except AsterismError:
        pass
    except Exception as error:
        return error
    if time.monotonic() - started > HANG_S:
        return TimeoutError(f"took {time.monotonic() - started:.0f} s")
    return None


def test_the_tables_have_every_public_call() -> None:
    def public(cls: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(cls, inspect.isfunction) if name[0] != "_"}

    assert public(Graph) - NOT_READS == set(CALLS)
    assert public(Euler) == set(EULER_CALLS)
    files = {"backup", "close", "load_graph", "restore", "verify", "begin_load"}
    assert public(asterism.Client) - files == set(CLIENT_CALLS)


def untyped_errors(
    call: Callable[..., Any], valid: Mapping[str, Any]
) -> Mapping[str, BaseException]:
    """Return the errors of a call with odd values that are not typed, by argument and value."""
    return {
        description: error
        for description, arguments in [("valid", valid), *odd_calls(call, valid)]
        if (error := outcome(lambda: call(**arguments))) is not None  # noqa: B023
    }


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_a_graph_take_odd_values(client: asterism.Client, name: str) -> None:
    assert not untyped_errors(getattr(client.graph("cases"), name), CALLS[name])


@pytest.mark.parametrize("name", CLIENT_CALLS)
def test_calls_of_a_client_take_odd_values(client: asterism.Client, name: str) -> None:
    assert not untyped_errors(getattr(client, name), CLIENT_CALLS[name])


@pytest.fixture(scope="module")
def euler(client: asterism.Client) -> Euler:
    return Euler(euler_graph.write(client, "euler"))


@pytest.mark.parametrize("name", EULER_CALLS)
def test_operators_of_euler_take_odd_values(euler: Euler, name: str) -> None:
    assert not untyped_errors(getattr(euler, name), EULER_CALLS[name])


@pytest.mark.parametrize("name", ["sample_neighbors", "node_features", "query", "upsert_nodes"])
def test_awaited_calls_take_odd_values(client: asterism.Client, name: str) -> None:
    graph = aio.AsyncGraph(client.graph("cases"))

    def call(**arguments: Any) -> Any:
        return asyncio.run(getattr(graph, name)(**arguments))

    call.__signature__ = inspect.signature(getattr(Graph, name))  # type: ignore[attr-defined]
    assert not untyped_errors(call, CALLS[name])


@pytest.mark.parametrize("name", STRING_CALLS)
def test_calls_with_strings_as_ids_take_odd_values(strings: Graph, name: str) -> None:
    assert not untyped_errors(getattr(strings, name), STRING_CALLS[name])
