"""Names of other systems as names of ours."""

from __future__ import annotations


def as_name(text: object) -> str:
    """What Euler calls a type or feature, as it is called here: a name that is a number gets a
    ``_`` before it.

    Examples
    --------
    >>> as_name(0), as_name("1"), as_name("user")
    ('_0', '_1', 'user')
    """
    name = str(text)
    return f"_{name}" if name[:1].isdigit() else name
