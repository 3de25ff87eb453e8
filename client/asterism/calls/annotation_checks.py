"""Checks of the arguments of public methods against their annotations.

They cover flags, strings and numbers, which messages would refuse with a TypeError of protobuf, or
take for another value: None for False, and 2 for True. Of lists and dicts, they check the container
alone; their entries, arrays and names of types are checked where they are converted, by
`asterism.calls.validation`.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from asterism_proto.errors import InvalidRequest

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentType:
    """Type of an argument as annotated."""

    exact: frozenset[type]
    """Types of values that need no conversion."""
    convert: Callable[[str, Any], Any]
    """(name, value) -> value of an exact type; raises InvalidRequest."""


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, np.bool_) or (type(value) is int and value in (0, 1)):
        return bool(value)
    raise InvalidRequest(f"{name}={value!r:.80}: expected True or False")


def _text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InvalidRequest(f"{name}={value!r:.80}: expected a string")


def _integer(name: str, value: Any) -> int:
    try:  # scalars of NumPy and of training frameworks are integers too, but not arrays
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise InvalidRequest(f"{name}={value!r:.80}: expected an integer")


def _real(name: str, value: Any) -> float:
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool):
        return float(value)
    raise InvalidRequest(f"{name}={value!r:.80}: expected a number")


def _listed(name: str, value: Any) -> Any:
    """Return an iterable as a list; sequences stay as they are.

    So do strings: calls refuse them with what they expect in their place.
    """
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return value
    if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping):
        with suppress(TypeError):  # an array without dimensions is no list
            return list(value)
    raise InvalidRequest(f"{name}={value!r:.80}: expected a list")


def _listed_or_mapping(name: str, value: Any) -> Any:
    return value if isinstance(value, Mapping) else _listed(name, value)


def _mapping(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return value
    raise InvalidRequest(f"{name}={value!r:.80}: expected a dict")


def _callable(name: str, value: Any) -> Any:
    if callable(value):
        return value
    raise InvalidRequest(f"{name}={value!r:.80}: expected a function")


_FUNCTION_OR_NONE = ArgumentType(exact=frozenset({type(None)}), convert=_callable)
_LIST = ArgumentType(exact=frozenset({list, tuple}), convert=_listed)
_LIST_OR_NONE = ArgumentType(exact=frozenset({list, tuple, type(None)}), convert=_listed)
_LIST_OR_MAPPING = ArgumentType(exact=frozenset({list, tuple, dict}), convert=_listed_or_mapping)
_FEATURES = ArgumentType(
    exact=frozenset({list, tuple, dict, type(None)}), convert=_listed_or_mapping
)
_MAPPING = ArgumentType(exact=frozenset({dict}), convert=_mapping)
_MAPPING_OR_NONE = ArgumentType(exact=frozenset({dict, type(None)}), convert=_mapping)
ARGUMENT_TYPES: Mapping[str, ArgumentType] = {
    "bool": ArgumentType(exact=frozenset({bool}), convert=_flag),
    "str": ArgumentType(exact=frozenset({str}), convert=_text),
    "str | None": ArgumentType(exact=frozenset({str, type(None)}), convert=_text),
    "int": ArgumentType(exact=frozenset({int}), convert=_integer),
    "Sequence[int]": _LIST,
    "Sequence[float]": _LIST,
    "Sequence[int] | None": _LIST_OR_NONE,
    "Sequence[int] | Mapping[str, Sequence[int]]": _LIST_OR_MAPPING,
    "Sequence[Names]": _LIST,
    "Sequence[TypeSelector]": _LIST,
    "Sequence[str]": _LIST,
    "Sequence[Names] | None": _LIST_OR_NONE,
    "Iterable[int] | None": _LIST_OR_NONE,
    "Iterable[bytes | str]": _LIST,
    "Iterable[str]": _LIST,
    "FeatureSelection": _FEATURES,
    "Features | None": _MAPPING_OR_NONE,
    "Mapping[str, Any] | None": _MAPPING_OR_NONE,
    "Mapping[str, str] | None": _MAPPING_OR_NONE,
    "Mapping[str, ArrayLike]": _MAPPING,
    "Callable[[Job], None] | None": _FUNCTION_OR_NONE,
    "Callable[[str, int, int | None], None] | None": _FUNCTION_OR_NONE,
}
"""Types by annotation."""
_SECONDS = ArgumentType(exact=frozenset({float, int}), convert=_real)
"""A number of seconds; calls check the range of other real numbers themselves."""
_OPTIONAL_TEXT = ArgumentType(
    exact=frozenset({str}), convert=lambda name, value: "" if value is None else _text(name, value)
)
"""A string that is empty by default; None is accepted for it."""


def check_argument_types(cls: Class) -> Class:
    """Decorate a class so that its public methods check arguments with a simple annotation."""
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            setattr(cls, name, _checked_method(method))
    return cls


def _argument_type(parameter: inspect.Parameter) -> ArgumentType | None:
    if parameter.annotation == "str" and parameter.default == "":
        return _OPTIONAL_TEXT
    if parameter.annotation == "float" and parameter.name.endswith("_s"):
        return _SECONDS
    return ARGUMENT_TYPES.get(str(parameter.annotation))


def _checked_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method with checks; the method itself if it has no argument to check."""
    parameters = inspect.signature(method).parameters
    names = [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD]
    types = {
        name: checked
        for name, parameter in parameters.items()
        if (checked := _argument_type(parameter)) is not None
    }
    if not types or hasattr(method, "__checks_argument_types__"):
        return method
    by_position = [types.get(name) for name in names]

    def converted(
        arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for name, value in keywords.items():
            checked = types.get(name)
            if checked is not None and type(value) not in checked.exact:
                keywords[name] = checked.convert(name, value)
        for i, (checked, value) in enumerate(zip(by_position, arguments, strict=False)):
            if checked is not None and type(value) not in checked.exact:
                value = checked.convert(names[i], value)
                arguments = (*arguments[:i], value, *arguments[i + 1 :])
        return arguments, keywords

    if inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def generate(*arguments: Any, **keywords: Any) -> Iterator[Any]:
            arguments, keywords = converted(arguments, keywords)
            yield from method(*arguments, **keywords)

        wrapper: Callable[..., Any] = generate
    else:

        @functools.wraps(method)
        def call(*arguments: Any, **keywords: Any) -> Any:
            arguments, keywords = converted(arguments, keywords)
            return method(*arguments, **keywords)

        wrapper = call
    wrapper.__dict__["__checks_argument_types__"] = True
    return wrapper
