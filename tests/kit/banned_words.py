"""Words that this repository does not use, and a search for them in any text."""

from __future__ import annotations

import re
from collections.abc import Iterator

WORDS = frozenset(
    [
        "told",
        "tell",
        "tells",
        "telling",
        "whose",
        "somebody",
        "nobody",
        "whoever",
        "everybody",
        "anew",
        "behind",
        "beat",
        "beats",
        "room",
        "rooms",
        "door",
        "doors",
        "doorplate",
        "doorplates",
        "law",
        "laws",
    ]
)
PHRASES = frozenset({"can not", "whole number", "whole numbers", "so many"})
FILE_METHODS = frozenset({"tell"})
"""Methods of Python's files."""

_SPACE = r"""(?:[ \t]+|[ \t]*["']?\\?\n[ \t]*(?:\#+:?|//+|\*+|>|[fr]?["'])?[ \t]*)"""
"""Spaces; or a line break, in a comment, a docstring or between two adjacent strings."""
_FOUND = re.compile(
    rf"\b(?:{'|'.join(sorted(WORDS | PHRASES, key=len, reverse=True))})\b".replace(" ", _SPACE)
)
_ALLOWED = re.compile(
    "|".join(
        rule.replace(" ", _SPACE)
        for rule in (
            r"\bpower(?:-| )laws?\b",  # the distribution
            # A place in a network.
            r"\bbehind (?:(?:an?|the|your|one) )?(?:[\w-]+ )?"
            r"(?:prox(?:y|ies)|load balancers?|gateways?|firewalls?|nat)\b",
            rf"(?:\.|\bdef )(?:{'|'.join(FILE_METHODS)})\(",
        )
    )
)
_CODE_SPAN = re.compile(r"`[^`\s](?:[^`\n]*[^`\s])?`")
"""A quoted name, in Markdown and in docstrings. JavaScript has other uses for backticks."""


def find(text: str, *, code_spans: bool = True) -> Iterator[tuple[int, str]]:
    """Yield each banned word in a text, in lower case, with its line from 1.

    Parameters
    ----------
    text : str
        Source or prose.
    code_spans : bool
        Whether text between backticks is a quotation, which may have any word.
    """
    text = text.lower()
    found = list(_FOUND.finditer(text))
    if not found:
        return
    rules = (_ALLOWED, _CODE_SPAN) if code_spans else (_ALLOWED,)
    allowed = [match.span() for rule in rules for match in rule.finditer(text)]
    for match in found:
        if not any(start <= match.start() and match.end() <= end for start, end in allowed):
            yield text.count("\n", 0, match.start()) + 1, match[0]
