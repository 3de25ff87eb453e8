"""The options that every command has may stand before or after its name: `hoist` moves them to the front."""

from __future__ import annotations

from collections.abc import Sequence

WITH_VALUE = frozenset({"--address", "--path", "--timeout"})
FLAGS = frozenset({"--json"})


def hoist(arguments: Sequence[str]) -> list[str]:
    """`arguments` with the global options first, in their order; what follows ``--`` stays where it is."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in FLAGS or (word.partition("=")[0] in WITH_VALUE and "=" in word):
            front.append(word)
        elif word in WITH_VALUE:
            front += [word, *(value for value in [next(words, None)] if value is not None)]
        else:
            rest.append(word)
    return front + rest
