"""Wrapping of a client's class as one with awaited calls."""

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
    """Stands on an event loop for an object of the client."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    def __repr__(self) -> str:
        return f"Async{self._inner!r}"

    def _repr_html_(self) -> str | None:
        """As a notebook shows it."""
        render = getattr(self._inner, "_repr_html_", None)
        return None if render is None else str(render())


class AsyncItemIterator(AsyncIterator[Item]):
    """What a generator of the client yields, each item awaited."""

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
    """What stands for ``value`` on an event loop: itself, but for objects that make calls."""
    if isinstance(value, GeneratorType):
        return AsyncItemIterator(value)
    wrapper = _WRAPPERS.get(type(value))
    return value if wrapper is None else wrapper(value)


def wrapper_of(
    inner: type, *, synchronous: tuple[str, ...] = ()
) -> Callable[[WrapperClass], WrapperClass]:
    """Give a class the public methods and properties of ``inner``, and what it names as its
    attributes.

    Parameters
    ----------
    inner : type
        Its methods become coroutines, generators become asynchronous ones.
    synchronous : tuple of str
        Methods that ask nobody: they stay as they are.
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
    """Public methods and properties of a class and of those that it is made of, by name."""
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
