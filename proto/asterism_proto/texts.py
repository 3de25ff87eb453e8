"""Texts without a UTF-8 encoding: those with a lone surrogate, U+D800 to U+DFFF.

Python reads such texts from JSON escapes and from file names and arguments that are not UTF-8. No
message, file or store can contain them, so every entry refuses them and names the argument.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from asterism_proto.errors import InvalidRequest

Class = TypeVar("Class", bound=type)

_LONE = re.compile("[\ud800-\udfff]")
_SHOWN = 60
"""Characters of a text in a message."""


def refusal(name: str, text: str) -> InvalidRequest | None:
    """Return the error for a text with a lone surrogate, None for any other text."""
    found = _LONE.search(text)
    if found is None:
        return None
    start = max(0, found.start() - _SHOWN // 2)
    shown = ("..." if start else "") + text[start : start + _SHOWN] + ("..." if start + _SHOWN < len(text) else "")
    return InvalidRequest(
        f"{name}={shown!r}: expected Unicode text; the character at position {found.start()}, "
        f"{found[0]!r}, is a lone surrogate, which has no UTF-8 encoding; remove or replace it"
    )


def check(name: str, value: object) -> None:
    """Raise InvalidRequest for the first text with a lone surrogate in a value.

    Parameters
    ----------
    name : str
        Of the argument or field.
    value : object
        A text, or mappings, sequences and arrays that contain texts.
    """
    for error in _refusals(name, value):
        raise error


def _refusals(name: str, value: object) -> Iterator[InvalidRequest]:
    for place, text in _texts(name, value):
        error = refusal(place, text)
        if error is not None:
            yield error


def _texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield every text in a value with its place, as ``options['type']`` or ``ids[3]``."""
    stack: list[tuple[str, object]] = [(name, value)]
    while stack:
        place, one = stack.pop()
        if isinstance(one, str):
            yield place, one
        elif isinstance(one, Mapping):
            entries = list(one.items())
            yield from ((f"{place}: key", key) for key, _ in entries if isinstance(key, str))
            stack += [(f"{place}[{key!r}]", item) for key, item in reversed(entries)]
        elif isinstance(one, list | tuple | set | frozenset):
            stack += [(f"{place}[{at}]", item) for at, item in reversed(list(enumerate(one)))]
        elif isinstance(one, np.ndarray) and one.dtype.kind in "UO":
            stack.append((place, one.tolist()))


def checked(cls: Class) -> Class:
    """Decorate a class: its public methods refuse arguments with lone surrogates.

    The arguments are examined only after a text could not be encoded, so that correct calls cost nothing.
    """
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            setattr(cls, name, _checked(method))
    return cls


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(method, "__refuses_surrogates__"):
        return method
    signature = inspect.signature(method)

    def translated(error: UnicodeEncodeError, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> Exception:
        if error.encoding.lower() not in ("utf-8", "utf8"):
            return error
        bound = signature.bind(*arguments, **named).arguments
        rest: Iterable[tuple[str, object]] = [*list(bound.items())[1:], ("text", error.object)]
        return next((found for name, value in rest for found in _refusals(name, value)), error)

    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def generate(*arguments: Any, **named: Any) -> Iterator[Any]:
            try:
                yield from method(*arguments, **named)
            except UnicodeEncodeError as error:
                raise translated(error, arguments, named) from error

        wrapper: Callable[..., Any] = generate
    else:

        @functools.wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            try:
                return method(*arguments, **named)
            except UnicodeEncodeError as error:
                raise translated(error, arguments, named) from error

        wrapper = call
    wrapper.__dict__["__refuses_surrogates__"] = True
    return wrapper
