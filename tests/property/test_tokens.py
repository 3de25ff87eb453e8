"""Whatever is given as a token: the call that it is of, or a refusal in words."""

from __future__ import annotations

import contextlib

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asterism.replay import ANSWERS, call_of, check_nodes, packed, token_of
from asterism_proto.errors import InvalidRequest
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as wire

heads = st.builds(
    wire.SampleNeighborsRequest,
    space=st.text(max_size=20),
    seed=st.integers(0, 2**64 - 1),
    edge_types=st.lists(st.integers(0, 2**32 - 1), max_size=3),
    count=st.integers(0, 2**31 - 1),
    replace=st.booleans(),
)
nodes = st.lists(st.integers(-1, 2**63 - 1), max_size=5)


def of(head: wire.SampleNeighborsRequest, ids: list[int]) -> str:
    reply = wire.SampleNeighborsReply(version=7, digest="d" * 64)
    return token_of("sample_neighbors", head, {"nodes": np.array(ids, np.int64)}, reply)


@given(heads, nodes)
def test_a_token_is_of_the_call_that_it_was_made_from(head: wire.SampleNeighborsRequest, ids: list[int]) -> None:
    replay, asked = call_of(of(head, ids))
    assert (replay.method, replay.digest, asked.version) == ("sample_neighbors", "d" * 64, 7)
    asked.version = head.version
    assert asked == head
    check_nodes(replay, asked, {"nodes": np.array(ids, np.int64)})


@given(heads, nodes, nodes)
def test_other_nodes_are_known_for_others(head: wire.SampleNeighborsRequest, ids: list[int], others: list[int]) -> None:
    assume(ids != others)
    replay, asked = call_of(of(head, ids))
    with contextlib.suppress(InvalidRequest):
        check_nodes(replay, asked, {"nodes": np.array(others, np.int64)})
        raise AssertionError(f"{others} passed for {ids}")


@settings(max_examples=300)
@given(heads, nodes, st.integers(0, 1 << 16), st.characters())
def test_a_token_with_a_letter_changed_or_cut_short_is_refused(head: wire.SampleNeighborsRequest, ids: list[int], at: int, letter: str) -> None:
    token = of(head, ids)
    at %= len(token) - 1  # the last letter's low bits may be padding
    for damaged in (token[:at], token[:at] + letter + token[at + 1 :]):
        if damaged == token:
            continue
        with contextlib.suppress(InvalidRequest):
            call_of(damaged)
            raise AssertionError(f"{damaged!r} passed for {token!r}")


@given(st.text(max_size=80), st.binary(max_size=60), st.sampled_from([*ANSWERS, "write", "scan_nodes", ""]))
def test_any_text_is_a_call_or_is_refused(text: str, request: bytes, method: str) -> None:
    for token in (text, packed(wire.Replay(method=method, request=request))):
        with contextlib.suppress(InvalidRequest):
            replay, asked = call_of(token)
            assert isinstance(asked, GRAPH[replay.method].request)
            assert replay.method in ANSWERS
