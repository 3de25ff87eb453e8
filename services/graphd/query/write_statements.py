"""Values as statements write them. A quiet room."""

from __future__ import annotations


def quote(text: str) -> str:
    """A text as it is written."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def format_scalar(value: object) -> str:
    """A value that is no text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def format_values(values: object) -> str:
    """A list of values, or the parameter that has them."""
    return (
        f"[{', '.join(quote(value) if isinstance(value, str) else str(value) for value in values)}]"
        if isinstance(values, tuple)
        else str(values)
    )
