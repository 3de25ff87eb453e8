"""Replies of read and sampling requests: sections, and the version that they come from."""

from __future__ import annotations

from typing import Protocol, TypeVar

from asterism_proto.framing import Frame
from graphd.operators.call_seeds import KEY_VERSION
from graphd.operators.request_context import RequestContext, Sections


class VersionedReply(Protocol):
    """Fields of every reply that reads a version."""

    version: int


class SampleReply(VersionedReply, Protocol):
    """Fields of a reply from which a replay token is built."""

    digest: str
    key_version: int


Read = TypeVar("Read", bound=VersionedReply)
Sample = TypeVar("Sample", bound=SampleReply)


def read_reply(context: RequestContext, reply_type: type[Read], sections: Sections) -> Frame[Read]:
    """Return the reply to a read."""
    head = reply_type()
    head.version = context.version.version
    return Frame(head, sections)


def sample_reply(
    context: RequestContext, reply_type: type[Sample], sections: Sections
) -> Frame[Sample]:
    """Return the reply to a sampling request."""
    head = reply_type()
    head.version, head.digest = context.version.version, context.version.digest
    head.key_version = KEY_VERSION
    return Frame(head, sections)
