"""Planting of mutants in a process, before or after it has imported their modules.

A module that is not imported yet is compiled from its changed source. In an imported module, the
changed functions get new code objects: references that other modules hold run the new code too, and
nothing is imported again.

Compiled kernels cannot be exchanged in this way. Code compiled from a mutant must not reach the
kernel cache either, because its keys are the sources on disk. A mutant of a kernel, or of a module
that a kernel's module imports, therefore needs ``NUMBA_DISABLE_JIT=1``
(`needs_interpreted_kernels`).
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import inspect
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tests.mutants.catalogue import find_mutant
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "ASTERISM_PLANTED"
"""Environment variable with the names of a process's mutants, separated by `

`.
"""
STARTUP_FOLDER = Path(__file__).with_name("planted")
"""Folder for PYTHONPATH: the interpreter plants the mutants in `VARIABLE` at its start."""
_SOURCE_ROOTS = ("services", "client", "proto")
_ROLES_BY_PACKAGE: Mapping[str, frozenset[str]] = {
    "metad": frozenset({"metad"}),
    "storaged": frozenset({"storaged"}),
    "graphd": frozenset({"graphd"}),
    "asterism_graphkit": frozenset({"storaged", "graphd"}),
    "asterism_access": frozenset({"metad", "storaged", "graphd"}),
    "asterism_daemonkit": frozenset({"metad", "storaged", "graphd"}),
    "asterism_model": frozenset({"metad", "storaged", "graphd"}),
    "asterism_proto": frozenset({"metad", "storaged", "graphd"}),
    "asterism_io": frozenset({"metad", "storaged", "graphd"}),
}
_KERNEL = re.compile(r"^@(kernel|kernel_holding_gil|inlined)\b", re.M)
_Functions = ast.FunctionDef | ast.AsyncFunctionDef


class StaleMutant(LookupError):
    """The source that a mutant changes differs from the expected one."""


def source_path(module: str) -> Path:
    """Return the file of one of our modules, without importing anything.

    Raises
    ------
    StaleMutant
        If there is no such module.
    """
    for root in _SOURCE_ROOTS:
        stem = ROOT / root / module.replace(".", "/")
        for path in (stem.with_suffix(".py"), stem / "__init__.py"):
            if path.exists():
                return path
    raise StaleMutant(f"module {module}: expected one of {', '.join(_SOURCE_ROOTS)}")


@cache
def plain_source(module: str) -> str:
    """Return a module's source as printed by `ast.unparse`, without comments and layout."""
    return ast.unparse(ast.parse(source_path(module).read_text()))


def changed_source(mutants: Sequence[Mutant]) -> str:
    """Return the plain source of one module with the changes of all its mutants.

    Raises
    ------
    StaleMutant
        If an old text does not occur exactly once.
    """
    source = plain_source(mutants[0].module)
    for mutant in mutants:
        for old, new in mutant.changes:
            if source.count(old) != 1:
                raise StaleMutant(
                    f"mutant {mutant.name!r}: {old!r} is {source.count(old)} times in "
                    f"{mutant.module}, expected once; give the mutant the text of today"
                )
            source = source.replace(old, new)
    return source


def _by_module(mutants: Iterable[Mutant]) -> dict[str, list[Mutant]]:
    grouped: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        grouped.setdefault(mutant.module, []).append(mutant)
    return grouped


def check_mutants(mutants: Iterable[Mutant]) -> None:
    """Raise StaleMutant if a mutant does not fit the sources."""
    for module_mutants in _by_module(mutants).values():
        changed_source(module_mutants)


def names_by_role(
    mutants: Collection[str] | Mapping[str, Collection[str]],
) -> dict[str, list[str]]:
    """Return the names of the mutants of each role's daemons.

    Parameters
    ----------
    mutants : collection of str, or mapping
        Names by role; or names only, of which each role gets those of modules that its daemons
        import.

    Raises
    ------
    LookupError
        If a name is unknown.
    ValueError
        If no daemon, or no daemon of the given role, imports a mutant's module.
    """
    given = isinstance(mutants, Mapping)
    names = {name for names in mutants.values() for name in names} if given else mutants
    by_role: dict[str, list[str]] = {}
    for name in names:
        module = find_mutant(name).module
        roles = _ROLES_BY_PACKAGE.get(module.partition(".")[0], frozenset())
        chosen = {role for role, own in mutants.items() if name in own} if given else roles
        if not chosen or not chosen <= roles:
            raise ValueError(
                f"mutant {name!r} of {module}: expected roles of {sorted(roles)}, "
                f"found {sorted(chosen)}"
            )
        for role in chosen:
            by_role.setdefault(role, []).append(name)
    return by_role


@cache
def _kernel_sources() -> Mapping[str, str]:
    """Return the source of every module that has kernels, by module."""
    services = ROOT / "services"
    sources = {
        ".".join(path.relative_to(services).with_suffix("").parts): path.read_text()
        for package in ("asterism_graphkit", "storaged", "graphd")
        for path in (services / package).rglob("*.py")
    }
    return {module: source for module, source in sources.items() if _KERNEL.search(source)}


@cache
def needs_interpreted_kernels(module: str) -> bool:
    """Return whether a module has kernels, or a module with kernels imports it."""
    package, _, name = module.rpartition(".")
    whole = re.compile(rf"^\s*(import {re.escape(module)}\b|from {re.escape(module)} import)", re.M)
    from_package = re.compile(rf"^\s*from {re.escape(package)} import (\([^)]*\)|[^\n(]*)", re.M)
    sources = _kernel_sources()
    return module in sources or any(
        whole.search(source)
        or any(name in re.findall(r"\w+", names) for names in from_package.findall(source))
        for source in sources.values()
    )


def environment_of(
    names: Collection[str], environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the environment variables that plant mutants in a process and its children.

    Parameters
    ----------
    names : collection of str
    environment : mapping, optional
        Environment of the process; default: this process's.

    Raises
    ------
    LookupError
        If a name is unknown, or a mutant does not fit the sources.
    """
    mutants = [find_mutant(name) for name in names]
    check_mutants(mutants)
    # The child inherits this environment.
    inherited = os.environ if environment is None else environment  # noqa: TID251
    path = filter(None, [str(STARTUP_FOLDER), inherited.get("PYTHONPATH", "")])
    variables = {VARIABLE: "|".join(names), "PYTHONPATH": os.pathsep.join(path)}
    if any(needs_interpreted_kernels(mutant.module) for mutant in mutants):
        variables["NUMBA_DISABLE_JIT"] = "1"
    return variables


def plant_from_environment() -> None:
    """Plant the mutants that this process's environment names."""
    names = os.environ.get(VARIABLE, "")  # noqa: TID251 - before any daemon reads its settings
    if names:
        plant([find_mutant(name) for name in names.split("|")])


def plant(mutants: Iterable[Mutant], *, interpreting: bool = False) -> None:
    """Plant mutants permanently in this process.

    Parameters
    ----------
    mutants : iterable of Mutant
    interpreting : bool, default False
        Whether compiled kernels that contain a changed one become interpreted. Their modules must
        be imported already.

    Raises
    ------
    LookupError
        If a mutant does not fit the source.
    TypeError
        If kernels are compiled that must be interpreted, or a module that is already imported
        changes in more than functions.
    """
    for module_name, module_mutants in _by_module(mutants).items():
        module = sys.modules.get(module_name)
        is_compiled = needs_interpreted_kernels(module_name) and not _kernels_are_interpreted()
        if is_compiled and (module is None or not interpreting):
            raise TypeError(f"{module_name}: mutants of kernels need NUMBA_DISABLE_JIT=1")
        source = changed_source(module_mutants)
        if module is None:
            sys.meta_path.insert(0, _MutantFinder(module_name, source))
            continue
        functions = exchange_functions(module, source)
        if is_compiled:
            importlib.import_module("tests.mutants.interpreting").interpret(functions)


def _kernels_are_interpreted() -> bool:
    jit = sys.modules.get("asterism_graphkit.compile.jit")
    if jit is not None:
        return bool(vars(jit)["INTERPRETED"])
    numba = sys.modules.get("numba")
    if numba is not None:
        return bool(vars(numba.config)["DISABLE_JIT"])
    return os.environ.get("NUMBA_DISABLE_JIT", "") == "1"  # noqa: TID251 - numba's own variable


class _MutantFinder(importlib.abc.MetaPathFinder):
    """Finder that imports one module from a changed source."""

    def __init__(self, module: str, source: str) -> None:
        self._module, self._source = module, source

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            return None
        spec.loader = _MutantLoader(fullname, spec.origin, self._source)
        return spec


class _MutantLoader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec")


def exchange_functions(module: ModuleType, source: str) -> list[FunctionType]:
    """Replace the code of a module's functions by that of a changed source; return those functions.

    Raises
    ------
    TypeError
        If the sources differ in more than the bodies of functions.
    """
    functions = {name: _resolve(module, name) for name in _changed_names(module.__name__, source)}
    code = compile(source, str(module.__file__), "exec")
    for name, function in functions.items():
        function.__code__ = _code_of(code, name)
    return list(functions.values())


def interpret_as_with(mutants: Iterable[Mutant]) -> None:
    """Interpret the kernels that mutants change, and those connected to them, without mutants.

    Their modules must be imported already.
    """
    interpreting = importlib.import_module("tests.mutants.interpreting")
    for module_name, module_mutants in _by_module(mutants).items():
        if needs_interpreted_kernels(module_name):
            module = sys.modules[module_name]
            for mutant in module_mutants:
                names = _changed_names(module_name, changed_source([mutant]))
                interpreting.interpret([_resolve(module, name) for name in names])


def _changed_names(module_name: str, source: str) -> list[str]:
    """Return the qualified names of the functions that differ in a changed source.

    Raises
    ------
    TypeError
        If the sources differ in more than the bodies of functions.
    """
    before, after = ast.parse(plain_source(module_name)), ast.parse(source)
    old_functions, new_functions = dict(_functions(before.body)), dict(_functions(after.body))
    changed_names = [
        name
        for name, function in old_functions.items()
        if name in new_functions and ast.dump(function) != ast.dump(new_functions[name])
    ]
    for function_node in [*old_functions.values(), *new_functions.values()]:
        function_node.body = []
    if ast.dump(before) != ast.dump(after):
        raise TypeError(f"{module_name}: more than the bodies of functions is changed")
    return changed_names


def _functions(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, _Functions]]:
    """Yield the functions and methods of a module, with their qualified names."""
    for node in body:
        if isinstance(node, _Functions):
            yield prefix + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")


def _resolve(module: ModuleType, name: str) -> FunctionType:
    """Return the function with a qualified name, without its decorators."""
    value: object = module
    for part in name.split("."):
        value = inspect.getattr_static(value, part)
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if clear := getattr(value, "cache_clear", None):
        clear()
    value = inspect.unwrap(value)  # type: ignore[arg-type]  # checked next
    if not isinstance(value, FunctionType):
        raise TypeError(f"{module.__name__}.{name}: expected a function, not {type(value)}")
    return value


def _code_of(code: CodeType, name: str) -> CodeType:
    """Return the code of a function, by qualified name, from the code of a module."""
    for part in name.split("."):
        code = next(
            constant
            for constant in code.co_consts
            if isinstance(constant, CodeType) and constant.co_name == part
        )
    return code
