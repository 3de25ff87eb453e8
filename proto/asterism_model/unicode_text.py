"""Checks for strings that have no UTF-8 encoding: lone surrogates, U+D800 to U+DFFF.

Python reads such strings from JSON escapes and from file names and arguments that are not UTF-8.
Messages, files and stores cannot contain them, so every entry point refuses them with an error that
has the name of the argument.
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

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_CHARS = 60
"""Most characters of a string that are shown in a message."""


def surrogate_error(name: str, text: str) -> InvalidRequest | None:
    """Return the error for a string with a lone surrogate; None for any other string."""
    match = _LONE_SURROGATE.search(text)
    if match is None:
        return None
    start = max(0, match.start() - _SHOWN_CHARS // 2)
    excerpt = (
        ("..." if start else "")
        + text[start : start + _SHOWN_CHARS]
        + ("..." if start + _SHOWN_CHARS < len(text) else "")
    )
    return InvalidRequest(
        f"{name}={excerpt!r}: expected Unicode text; the character at position {match.start()}, "
        f"{match[0]!r}, is a lone surrogate, which has no UTF-8 encoding; remove or replace it"
    )


def check(name: str, value: object) -> None:
    """Raise InvalidRequest for the first string with a lone surrogate in a value.

    Parameters
    ----------
    name : str
        Name of the argument or field.
    value : object
        A string, or mappings, sequences and arrays that contain strings.
    """
    for error in _surrogate_errors(name, value):
        raise error


def _surrogate_errors(name: str, value: object) -> Iterator[InvalidRequest]:
    for location, text in _iter_texts(name, value):
        error = surrogate_error(location, text)
        if error is not None:
            yield error


def _iter_texts(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield every string in a value with its path, such as ``options['type']`` or ``ids[3]``."""
    stack: list[tuple[str, object]] = [(name, value)]
    while stack:
        location, current = stack.pop()
        if isinstance(current, str):
            yield location, current
        elif isinstance(current, Mapping):
            entries = list(current.items())
            yield from ((f"{location}: key", key) for key, _ in entries if isinstance(key, str))
            stack += [(f"{location}[{key!r}]", item) for key, item in reversed(entries)]
        elif isinstance(current, list | tuple | set | frozenset):
            stack += [
                (f"{location}[{index}]", item) for index, item in reversed(list(enumerate(current)))
            ]
        elif isinstance(current, np.ndarray) and current.dtype.kind in "UO":
            stack.append((location, current.tolist()))


def refuse_surrogates(cls: Class) -> Class:
    """Decorate a class so that its public methods refuse arguments with lone surrogates.

    The wrappers examine arguments only after a UnicodeEncodeError, so that valid calls are not
    slowed down."""
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            setattr(cls, name, _checked_method(method))
    return cls


def _checked_method(method: Callable[..., Any]) -> Callable[..., Any]:
    if hasattr(method, "__refuses_surrogates__"):
        return method
    signature = inspect.signature(method)

    def translate(
        error: UnicodeEncodeError, arguments: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> Exception:
        if error.encoding.lower() not in ("utf-8", "utf8"):
            return error
        bound = signature.bind(*arguments, **keywords).arguments
        rest: Iterable[tuple[str, object]] = [*list(bound.items())[1:], ("text", error.object)]
        return next(
            (refused for name, value in rest for refused in _surrogate_errors(name, value)), error
        )

    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def generate(*arguments: Any, **keywords: Any) -> Iterator[Any]:
            try:
                yield from method(*arguments, **keywords)
            except UnicodeEncodeError as error:
                raise translate(error, arguments, keywords) from error

        wrapper: Callable[..., Any] = generate
    else:

        @functools.wraps(method)
        def call(*arguments: Any, **keywords: Any) -> Any:
            try:
                return method(*arguments, **keywords)
            except UnicodeEncodeError as error:
                raise translate(error, arguments, keywords) from error

        wrapper = call
    wrapper.__dict__["__refuses_surrogates__"] = True
    return wrapper
