"""Conversion of names from other systems."""

from __future__ import annotations


def as_name(text: object) -> str:
    """Return Euler's name of a type or feature as a valid name here.

    Parameters
    ----------
    text : object
        Name or number.

    Returns
    -------
    str
        The name, with the prefix ``_`` if it starts with a digit.

    Examples
    --------
    >>> as_name(0), as_name("1"), as_name("user")
    ('_0', '_1', 'user')
    """
    name = str(text)
    return f"_{name}" if name[:1].isdigit() else name
