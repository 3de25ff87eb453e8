"""Wrapping of the client's classes as classes with awaited calls."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from types import GeneratorType
from typing import Any, Generic, Self, TypeVar

from asterism.aio.greenlets import run_in_greenlet

Inner = TypeVar("Inner")
Item = TypeVar("Item")
WrapperClass = TypeVar("WrapperClass", bound="type[AsyncWrapper[Any]]")

_WRAPPERS: dict[type, type[AsyncWrapper[Any]]] = {}
_END = object()


class AsyncWrapper(Generic[Inner]):
    """Asyncio counterpart of an object of the client."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"Async{self._inner!r}"

    def _repr_html_(self) -> str | None:
        """Return the HTML that notebooks display."""
        render = getattr(self._inner, "_repr_html_", None)
        return None if render is None else str(render())


class AsyncItemIterator(AsyncIterator[Item]):
    """Asynchronous iterator over a generator of the client; each item is awaited."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        item: Any = await run_in_greenlet(next, self._items, _END)
        if item is _END:
            raise StopAsyncIteration
        result: Item = item
        return result


def wrap_value(value: Any) -> Any:
    """Return the wrapper of an object that makes calls; return other values unchanged."""
    if isinstance(value, GeneratorType):
        return AsyncItemIterator(value)
    wrapper = _WRAPPERS.get(type(value))
    return value if wrapper is None else wrapper(value)


def wrapper_of(
    inner: type, *, synchronous: tuple[str, ...] = ()
) -> Callable[[WrapperClass], WrapperClass]:
    """Return a class decorator that adds the wrapped public members of ``inner``.

    The class's annotations name the attributes to forward.

    Parameters
    ----------
    inner : type
        Class to wrap. Its methods become coroutines, its generators asynchronous iterators.
    synchronous : tuple of str, default ()
        Methods that make no request; they stay synchronous.

    Returns
    -------
    callable
        Decorator of a subclass of `AsyncWrapper`.
    """

    def add_members(wrapper: WrapperClass) -> WrapperClass:
        _WRAPPERS[inner] = wrapper
        for name in inspect.get_annotations(wrapper):
            setattr(wrapper, name, property(functools.partial(_wrapped_attribute, name)))
        for name, member in public_members(inner).items():
            attribute: Any = (
                property(functools.partial(_wrapped_attribute, name), doc=member.__doc__)
                if isinstance(member, property)
                else None
            )
            if attribute is None:
                attribute = (
                    _synchronous_method(member)
                    if name in synchronous or inspect.isgeneratorfunction(member)
                    else _awaited_method(member)
                )
                attribute.__qualname__ = f"{wrapper.__name__}.{name}"
                attribute.__module__ = wrapper.__module__
            setattr(wrapper, name, attribute)
        return wrapper

    return add_members


def public_members(inner: type) -> dict[str, Any]:
    """Return the public methods and properties of a class and its bases, by name."""
    static_members = {
        name: inspect.getattr_static(inner, name) for name in dir(inner) if not name.startswith("_")
    }
    return {
        name: member
        for name, member in static_members.items()
        if inspect.isfunction(member) or isinstance(member, property)
    }


def _wrapped_attribute(name: str, wrapper: AsyncWrapper[Any]) -> Any:
    return wrap_value(getattr(wrapper._inner, name))


def _synchronous_method(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def forwarded(self: AsyncWrapper[Any], *args: Any, **kwargs: Any) -> Any:
        return wrap_value(method(self._inner, *args, **kwargs))

    return forwarded


def _awaited_method(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def awaited_call(self: AsyncWrapper[Any], *args: Any, **kwargs: Any) -> Any:
        return wrap_value(await run_in_greenlet(method, self._inner, *args, **kwargs))

    return awaited_call
