"""The requests that campaigns start from: what graphd sends for every call of `tests.kit.cases`, kept in the folder of the services."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from pathlib import Path

from asterism_proto.arrays import Frame, encode
from asterism_proto.errors import AsterismError
from asterism_proto.v1 import storaged_pb2 as pb
from tests.kit import cases
from tests.kit.fuzzing.services import Recorded, Services, distinct, services

_NAME = "requests.pickle"
_WRITES = ("write_blocks", "exists", "list_births", "read_births")
"""Their answers depend on what a campaign writes."""


def record(folder: Path, storageds: int, placement: str = "mix64") -> None:
    """Make services on a folder, load and build the graph of `tests.kit.cases`, and keep what its storageds were asked."""
    with services(folder, storageds) as running:
        graph = cases.load(running.client, "cases", placement)
        for call in cases.calls(graph).values():
            call()
    kept = [(one.host, one.method, type(one.head).__name__, one.head.SerializeToString(), one.arrays) for one in running.recorded]
    (folder / _NAME).write_bytes(pickle.dumps(kept))


def read(folder: Path, each: int) -> list[Recorded]:
    """The recorded requests: up to ``each`` different ones of every method and host."""
    found = []
    for host, method, kind, head, arrays in pickle.loads((folder / _NAME).read_bytes()):
        message = getattr(pb, kind).FromString(head)
        found.append(Recorded(host=host, method=method, head=message, arrays=arrays))
    return distinct(found, each)


def answers(running: Services, requests: Sequence[Recorded]) -> list[str]:
    """A digest of the answer to each request that reads, once storageds know what satisfies the filters of all of them."""
    for one in requests:
        if one.method == "restrict":
            _answer(running, one)
    return [_answer(running, one) for one in requests if one.method not in _WRITES]


def _answer(running: Services, one: Recorded) -> str:
    try:
        answer = running.answer(one.host, one.method, Frame(one.head, one.arrays), 120)
    except AsterismError as error:
        return f"{type(error).__name__}: {error}"
    assert isinstance(answer, Frame)
    return hashlib.sha256(encode(answer)).hexdigest()
