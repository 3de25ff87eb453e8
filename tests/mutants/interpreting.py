"""Interpretation of some kernels in a process that has compiled all of them.

A mutant of a kernel is interpreted, and so are the kernels that call it: their compiled code
contains the code of the kernels that they call. What these kernels call is interpreted too, because
plain Python needs the scalars of NumPy, which compiled code returns as those of Python. All other
kernels stay compiled.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

from numba import config
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

_PACKAGES = ("asterism_graphkit", "storaged", "graphd")
_WITH_PLAIN_TWINS = ("asterism_graphkit.compile.jit", "asterism_graphkit.compile.simd")
"""Modules with functions that plain Python implements in another way."""
_implementations: dict[int, Callable[..., Any]] = {}
"""The function that runs instead of a compiled one, by the identity of the latter."""


def interpret(functions: Collection[FunctionType]) -> None:
    """Interpret the kernels among some functions permanently in this process.

    Parameters
    ----------
    functions : collection of function
        Functions as written, without their decorators; those that are no kernels are ignored.
    """
    implementations = _all_implementations()
    changed = {key for key, function in implementations.items() if function in functions}
    if not changed:
        return
    callees = _callees()
    interpreted = _reachable(_reachable(changed, _reversed(callees)), callees)
    if not _implementations:
        _dispatch_to_implementations()
    _implementations.update({key: implementations[key] for key in interpreted})
    for module in _own_modules():
        if "USE_SIMD" in vars(module):
            vars(module)["USE_SIMD"] = True  # as if all kernels were interpreted


def is_interpreted(kernel: object) -> bool:
    """Return whether a compiled kernel is interpreted in this process."""
    return id(kernel) in _implementations


def prepare() -> None:
    """Compute what `interpret` needs, for processes that are forked later."""
    _callees()


def _own_modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES:
            yield module


@cache
def _compiled() -> Mapping[int, object]:
    """Return all kernels and intrinsics in the globals of our modules, by identity."""
    return {
        id(value): value
        for module in _own_modules()
        for value in vars(module).values()
        if isinstance(value, Dispatcher | _Intrinsic)
    }


@cache
def _all_implementations() -> Mapping[int, FunctionType]:
    """Return the plain function of every kernel and intrinsic, by the identity of the latter."""
    twins = _plain_twins()
    implementations = {
        key: twins.get(key) or vars(value).get("py_func") for key, value in _compiled().items()
    }
    return {key: function for key, function in implementations.items() if function is not None}


def _plain_twins() -> dict[int, FunctionType]:
    """Return the functions of modules that have plain twins, by the identity of compiled ones."""
    originals = {name: importlib.import_module(name) for name in _WITH_PLAIN_TWINS}
    twins: dict[int, FunctionType] = {}
    was_disabled, config.DISABLE_JIT = config.DISABLE_JIT, True
    try:
        for name, original in originals.items():
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.loader is not None
            copy = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(copy)
            for attribute, value in vars(original).items():
                twin = vars(copy).get(attribute)
                if isinstance(value, Dispatcher | _Intrinsic) and twin is not value:
                    twin = getattr(twin, "__wrapped__", twin)
                    if isinstance(twin, FunctionType):
                        twins[id(value)] = twin
    finally:
        config.DISABLE_JIT = was_disabled
        sys.modules.update(originals)
    return twins


@cache
def _callees() -> Mapping[int, set[int]]:
    """Return the kernels and intrinsics that each one names, by identity."""
    implementations = _all_implementations()
    return {
        key: {id(value) for value in _named_values(function) if id(value) in implementations}
        for key, function in implementations.items()
    }


def _named_values(function: FunctionType) -> Iterator[object]:
    names = set(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        if isinstance(value, ModuleType):
            yield from (vars(value)[attribute] for attribute in names & vars(value).keys())
        yield value


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _reversed(edges: Mapping[int, set[int]]) -> Mapping[int, set[int]]:
    callers: dict[int, set[int]] = {key: set() for key in edges}
    for caller, callees in edges.items():
        for callee in callees:
            callers[callee].add(caller)
    return callers


def _reachable(starts: Iterable[int], edges: Mapping[int, set[int]]) -> set[int]:
    reached, pending = set(starts), list(starts)
    while pending:
        fresh = edges[pending.pop()] - reached
        reached |= fresh
        pending.extend(fresh)
    return reached


def _dispatch_to_implementations() -> None:
    """Make every call from Python look for the function to run instead.

    References to kernels are in many modules, tables and closures; the call is in one place.
    """
    call_compiled = Dispatcher.__call__

    def call(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        function = _implementations.get(id(self))
        if function is None:
            return call_compiled(self, *args, **kwargs)
        return function(*args, **kwargs)

    def call_intrinsic(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        return _implementations[id(self)](*args, **kwargs)

    Dispatcher.__call__ = call
    _Intrinsic.__call__ = call_intrinsic
