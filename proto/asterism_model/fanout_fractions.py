"""Shares of a node's edges, as exact decimals, and the number of edges that a share amounts to."""

from __future__ import annotations

import re
from fractions import Fraction

from asterism_proto.errors import InvalidRequest

_MAX_CHARS = 40
"""Longest text; the shortest text of a float64 has at most 24 characters."""
_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?", re.ASCII)


def parse_share(argument: str, text: str) -> Fraction:
    """Return the exact value of a share.

    Parameters
    ----------
    argument : str
        Name of the argument in messages.
    text : str
        A decimal above 0 and at most 1, such as ``0.1`` or ``5e-3``.

    Returns
    -------
    Fraction

    Raises
    ------
    InvalidRequest
        The text is not such a number.
    """
    if len(text) <= _MAX_CHARS and _DECIMAL.fullmatch(text):
        share = Fraction(text)
        if 0 < share <= 1:
            return share
    raise InvalidRequest(
        f"{argument}={text[:_MAX_CHARS]}: expected a share of each node's edges, above 0 and at "
        "most 1; give a number of neighbors as an integer"
    )


def share_count(share: Fraction, edges: int) -> int:
    """Return how many of a number of edges a share amounts to, rounded up."""
    return -(-share.numerator * edges // share.denominator)
