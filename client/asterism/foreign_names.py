"""Conversion of names from other systems."""

from __future__ import annotations


def as_name(text: object) -> str:
    """Return Euler's name of a type or feature as a valid name here.

    A name that starts with a digit gets the prefix ``_``.

    Examples
    --------
    >>> as_name(0), as_name("1"), as_name("user")
    ('_0', '_1', 'user')
    """
    name = str(text)
    return f"_{name}" if name[:1].isdigit() else name
