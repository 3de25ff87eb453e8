"""Print the kernels that all that `asterism warm` does leaves to be compiled later.

They are printed as JSON: how many kernels there are, those that it compiles for no types, and those
that a call which reads needs for other types. Run as a program: another process may have compiled
more.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType

from numba.core.dispatcher import Dispatcher

import storaged
from tests.kit import cases

SERVICES = Path(storaged.__path__[0]).parent


def modules() -> Iterator[ModuleType]:
    """Import all modules of the services but entry points."""
    for folder in sorted(SERVICES.glob("*/__init__.py")):
        for info in pkgutil.walk_packages([str(folder.parent)], f"{folder.parent.name}."):
            if not info.name.endswith("__main__"):
                yield importlib.import_module(info.name)


def is_inlined(kernel: Dispatcher) -> bool:
    """Return whether a kernel is only compiled into others: Python cannot call it."""
    return bool(kernel.targetoptions.get("no_cpython_wrapper"))


def called_kernels(kernel: Dispatcher) -> Iterator[Dispatcher]:
    """Return the kernels that the code of a kernel names."""
    names: set[str] = set()
    codes: list[CodeType] = [kernel.py_func.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    scope = kernel.py_func.__globals__
    imported = [scope[name] for name in names if isinstance(scope.get(name), ModuleType)]
    for name in names:
        for found in (scope.get(name), *(getattr(module, name, None) for module in imported)):
            if isinstance(found, Dispatcher):
                yield found


def with_called(kernels: Iterable[Dispatcher]) -> set[Dispatcher]:
    """Return kernels and all that they call, which are in the cached code of the callers."""
    reached: set[Dispatcher] = set()
    waiting = list(kernels)
    while waiting:
        kernel = waiting.pop()
        if kernel not in reached:
            reached.add(kernel)
            waiting += called_kernels(kernel)
    return reached


def kernels_of_services() -> dict[str, Dispatcher]:
    """Return the kernels by name."""
    return {
        f"{value.py_func.__module__}.{value.py_func.__name__}": value
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, Dispatcher)
    }


def compiled_types(kernels: Mapping[str, Dispatcher]) -> set[tuple[str, object]]:
    """Return kernel and argument types of what Python calls."""
    return {
        (name, types)
        for name, kernel in kernels.items()
        if not is_inlined(kernel)
        for types in kernel.overloads
    }


def main() -> None:
    """Compile all ahead, then make every call that reads, and print what was missing."""
    kernels = kernels_of_services()
    from asterism_standalone.compile_worker import STEPS

    for step in STEPS.values():
        step()
    ahead = compiled_types(kernels)
    reached = with_called(kernel for kernel in kernels.values() if kernel.overloads)
    cases.embedded_digests()
    later = {f"{name}{types}" for name, types in compiled_types(kernels) - ahead}
    uncompiled = {
        name for name, kernel in kernels.items() if not is_inlined(kernel) and kernel not in reached
    }
    print(
        json.dumps(
            {"kernels": len(kernels), "uncompiled": sorted(uncompiled), "later": sorted(later)}
        )
    )


if __name__ == "__main__":
    main()
