"""How a client's class becomes one whose calls are awaited: its methods run as strands, what they give is faced too."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from types import GeneratorType
from typing import Any, Generic, Self, TypeVar

from asterism.aio.strands import awaited

Inner = TypeVar("Inner")
Item = TypeVar("Item")
Made = TypeVar("Made", bound="type[Face[Any]]")

_FACES: dict[type, type[Face[Any]]] = {}
_END = object()


class Face(Generic[Inner]):
    """Stands on an event loop for an object of the client."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"Async{self._inner!r}"

    def _repr_html_(self) -> str | None:
        """As a notebook shows it."""
        shown = getattr(self._inner, "_repr_html_", None)
        return None if shown is None else str(shown())


class AsyncItems(AsyncIterator[Item]):
    """What a generator of the client yields, each item awaited."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        item: Any = await awaited(next, self._items, _END)
        if item is _END:
            raise StopAsyncIteration
        found: Item = item
        return found


def faced(value: Any) -> Any:
    """What stands for ``value`` on an event loop: itself, but for objects that make calls."""
    if isinstance(value, GeneratorType):
        return AsyncItems(value)
    face = _FACES.get(type(value))
    return value if face is None else face(value)


def face_of(inner: type, *, plain: tuple[str, ...] = ()) -> Callable[[Made], Made]:
    """Give a class the public methods and properties of ``inner``, and what it names as its attributes.

    Parameters
    ----------
    inner : type
        Its methods become coroutines, generators become asynchronous ones.
    plain : tuple of str
        Methods that ask nobody: they stay as they are.
    """

    def fill(face: Made) -> Made:
        _FACES[inner] = face
        for name in inspect.get_annotations(face):
            setattr(face, name, property(functools.partial(_attribute, name)))
        for name, member in members(inner).items():
            made: Any = property(functools.partial(_attribute, name), doc=member.__doc__) if isinstance(member, property) else None
            if made is None:
                made = _plain(member) if name in plain or inspect.isgeneratorfunction(member) else _call(member)
                made.__qualname__ = f"{face.__name__}.{name}"
                made.__module__ = face.__module__
            setattr(face, name, made)
        return face

    return fill


def members(inner: type) -> dict[str, Any]:
    """Public methods and properties of a class and of those that it is made of, by name."""
    found = {name: inspect.getattr_static(inner, name) for name in dir(inner) if not name.startswith("_")}
    return {name: member for name, member in found.items() if inspect.isfunction(member) or isinstance(member, property)}


def _attribute(name: str, face: Face[Any]) -> Any:
    return faced(getattr(face._inner, name))


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def given(self: Face[Any], *args: Any, **named: Any) -> Any:
        return faced(method(self._inner, *args, **named))

    return given


def _call(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def called(self: Face[Any], *args: Any, **named: Any) -> Any:
        return faced(await awaited(method, self._inner, *args, **named))

    return called
