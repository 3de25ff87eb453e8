"""Initial requests of campaigns: those of graphd for every call of `tests.kit.cases`.

They are stored in the folder of the services.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from pathlib import Path

from asterism_proto.errors import AsterismError
from asterism_proto.framing import Frame, encode
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from tests.kit import cases
from tests.kit.fuzzing.services import RecordedCall, Services, select_distinct, services

_NAME = "requests.pickle"
_WRITES = ("write_blocks", "exists", "list_revivals", "read_revivals")
"""Methods with results that depend on the writes of a campaign."""


def record(folder: Path, storageds: int, placement: str = "mix64") -> None:
    """Run services on a folder with the graph of `tests.kit.cases`, and record their requests."""
    with services(folder, storageds) as running:
        graph = cases.load(running.client, "cases", placement)
        for call in cases.calls(graph).values():
            call()
    entries = [
        (
            request.host,
            request.method,
            type(request.head).__name__,
            request.head.SerializeToString(),
            request.arrays,
        )
        for request in running.recorded
    ]
    (folder / _NAME).write_bytes(pickle.dumps(entries))


def read(folder: Path, max_each: int) -> list[RecordedCall]:
    """The recorded requests: up to ``max_each`` different ones of every method and host."""
    requests = []
    for host, method, kind, head, arrays in pickle.loads((folder / _NAME).read_bytes()):
        message = getattr(storaged_pb, kind).FromString(head)
        requests.append(RecordedCall(host=host, method=method, head=message, arrays=arrays))
    return select_distinct(requests, max_each)


def response_digests(running: Services, requests: Sequence[RecordedCall]) -> list[str]:
    """Return a digest of the reply to each reading request.

    Storageds first learn the matches of the filters of all requests.
    """
    for request in requests:
        if request.method == "filter_rows":
            _response_digest(running, request)
    return [
        _response_digest(running, request) for request in requests if request.method not in _WRITES
    ]


def _response_digest(running: Services, request: RecordedCall) -> str:
    try:
        reply = running.call_storaged(
            request.host, request.method, Frame(request.head, request.arrays), 120
        )
    except AsterismError as error:
        return f"{type(error).__name__}: {error}"
    assert isinstance(reply, Frame)
    return hashlib.sha256(encode(reply)).hexdigest()
