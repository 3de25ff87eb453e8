"""Values of JSON: objects with distinct names, and infinities that are written as such."""

from __future__ import annotations

from typing import Any


def unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; raise ValueError for a repeated name, as one value would be lost.

    It is a value for ``object_pairs_hook`` of `json.loads`.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"{next(name for name in names if names.count(name) > 1)!r} is repeated; expected "
            f"each name once"
        )
    return result


class Infinity(float):
    """Infinity that is written in the text; a number that is too large is a plain float."""


def parse_constant(text: str) -> float:
    """Return the value of ``NaN``, ``Infinity`` or ``-Infinity``.

    It is a value for ``parse_constant`` of `json.loads`.
    """
    return float(text) if text == "NaN" else Infinity(text)
