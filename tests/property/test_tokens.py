"""Decoding a replay token gives its call or an error with a message, for any text."""

from __future__ import annotations

import contextlib

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from asterism.calls.replay_tokens import (
    DECODERS,
    check_nodes,
    decode_token,
    encode_token,
    make_token,
)
from asterism_proto.errors import InvalidRequest
from asterism_proto.methods import GRAPH
from asterism_proto.v1 import graphd_pb2 as graphd_pb

heads = st.builds(
    graphd_pb.SampleNeighborsRequest,
    space=st.text(max_size=20),
    seed=st.integers(0, 2**64 - 1),
    edge_types=st.lists(st.integers(0, 2**32 - 1), max_size=3),
    count=st.integers(0, 2**31 - 1),
    replace=st.booleans(),
)
nodes = st.lists(st.integers(-1, 2**63 - 1), max_size=5)


def token_for(head: graphd_pb.SampleNeighborsRequest, ids: list[int]) -> str:
    reply = graphd_pb.SampleNeighborsReply(version=7, digest="d" * 64)
    return make_token("sample_neighbors", head, {"nodes": np.array(ids, np.int64)}, reply)


@given(heads, nodes)
def test_token_decodes_to_its_call(head: graphd_pb.SampleNeighborsRequest, ids: list[int]) -> None:
    replay, decoded = decode_token(token_for(head, ids))
    assert (replay.method, replay.digest, decoded.version) == ("sample_neighbors", "d" * 64, 7)
    decoded.version = head.version
    assert decoded == head
    check_nodes(replay, decoded, {"nodes": np.array(ids, np.int64)})


@given(heads, nodes, nodes)
def test_other_nodes_are_detected(
    head: graphd_pb.SampleNeighborsRequest, ids: list[int], others: list[int]
) -> None:
    assume(ids != others)
    replay, decoded = decode_token(token_for(head, ids))
    with contextlib.suppress(InvalidRequest):
        check_nodes(replay, decoded, {"nodes": np.array(others, np.int64)})
        raise AssertionError(f"{others} passed for {ids}")


@settings(max_examples=300)
@given(heads, nodes, st.integers(0, 1 << 16), st.characters())
def test_a_token_with_a_letter_changed_or_cut_short_is_refused(
    head: graphd_pb.SampleNeighborsRequest, ids: list[int], position: int, letter: str
) -> None:
    token = token_for(head, ids)
    position %= len(token) - 1  # the last letter's low bits may be padding
    for damaged in (token[:position], token[:position] + letter + token[position + 1 :]):
        if damaged == token:
            continue
        with contextlib.suppress(InvalidRequest):
            decode_token(damaged)
            raise AssertionError(f"{damaged!r} passed for {token!r}")


@given(
    st.text(max_size=80),
    st.binary(max_size=60),
    st.sampled_from([*DECODERS, "write", "scan_nodes", ""]),
)
def test_any_text_decodes_to_a_call_or_is_refused(text: str, request: bytes, method: str) -> None:
    for token in (text, encode_token(graphd_pb.Replay(method=method, request=request))):
        with contextlib.suppress(InvalidRequest):
            replay, decoded = decode_token(token)
            assert isinstance(decoded, GRAPH[replay.method].request)
            assert replay.method in DECODERS
