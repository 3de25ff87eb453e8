"""Rows and bytes of calls, which limits count: as expected before a call, and as they were."""

from __future__ import annotations

from typing import NamedTuple

from asterism_model.graph_prices import price_request, section_sizes
from asterism_proto.framing import Frame
from asterism_proto.transport import Content


class CallCost(NamedTuple):
    """Rows and bytes of one call."""

    rows: int
    """Rows that it samples, reads or writes."""
    size: int
    """Bytes of request and reply."""
    exact: bool = True
    """False if the number of rows is not known before the reply."""


def expected_cost(request: Content) -> CallCost:
    """Return the cost of a request before it runs.

    Reads of the Graph service cost the rows and bytes of their price; other requests with arrays,
    such as writes, the rows and bytes that they contain."""
    size = content_bytes(request)
    if not isinstance(request, Frame):
        return CallCost(0, size)
    price = price_request(request.head, section_sizes(request.arrays))
    if price is None:
        return CallCost(_longest(request), size, exact=False)
    return CallCost(price.rows, size + price.bytes, price.exact)


def actual_cost(request: Content, expected: CallCost, reply: Content) -> CallCost:
    """Return the cost of an answered request.

    Bytes are those of both contents. Rows are the expected ones if these were exact, otherwise
    those of the longest array in either content."""
    rows = expected.rows if expected.exact else max(_longest(request), _longest(reply))
    return CallCost(rows, content_bytes(request) + content_bytes(reply))


def content_bytes(content: Content) -> int:
    """Return the bytes of a message, or of a head and its arrays."""
    if isinstance(content, Frame):
        return content.head.ByteSize() + sum(array.nbytes for array in content.arrays.values())
    return content.ByteSize()


def _longest(content: Content) -> int:
    if not isinstance(content, Frame):
        return 0
    return max((len(array) for array in content.arrays.values() if array.ndim), default=0)
