"""Tests that no import cycle joins modules of the client, the services and proto.

Imports for type checkers only, imports inside functions and those of stub files count as well: a
module is read, tested and moved without the modules above it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOTS = ("proto", "client", "services")


def module_files(root: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and file of each module of packages, stub files included.

    Modules outside packages are scripts that build the distributions.
    """
    for folder in (root / name for name in ROOTS):
        for path in sorted((*folder.glob("*/**/*.py"), *folder.glob("*/**/*.pyi"))):
            parts = path.relative_to(folder).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imported_names(tree: ast.Module, package: list[str]) -> Iterator[str]:
    """Yield the full names that a module imports, at any place in the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{source}.{alias.name}" for alias in node.names)


def enclosing_packages(module: str) -> set[str]:
    parts = module.split(".")
    return {".".join(parts[:count]) for count in range(1, len(parts))}


def imported_modules(name: str, module: str, modules: Mapping[str, object]) -> set[str]:
    """Return the modules that an import of a name runs.

    These are the longest prefix that is a module, and the packages around it, except those around
    the importing module too.

    Top-level packages are left out unless they are named, because `asterism` imports its public
    names, including an embedded service, on first access.
    """
    while name not in modules:
        name, _, _ = name.rpartition(".")
        if not name:
            return set()
    packages = {package for package in enclosing_packages(name) if "." in package}
    return {name, *(packages - enclosing_packages(module))} - {module}


@functools.cache
def import_graph(root: Path) -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    files = list(module_files(root))
    graph: dict[str, set[str]] = {module: set() for module, _ in files}
    for module, path in files:
        package = module.split(".") if path.stem == "__init__" else module.split(".")[:-1]
        for name in imported_names(ast.parse(path.read_text()), package):
            graph[module] |= imported_modules(name, module, graph)
    return graph


def import_cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module.

    Tarjan 1972, *Depth-first search and linear graph algorithms*, SIAM Journal on Computing 1(2),
    with a stack of its own instead of recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    open_modules: list[str] = []
    cycles: list[list[str]] = []
    for start in sorted(graph):
        if start in index:
            continue
        path = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        open_modules.append(start)
        while path:
            module, imports = path[-1]
            for imported in imports:
                if imported not in index:
                    index[imported] = low[imported] = len(index)
                    open_modules.append(imported)
                    path.append((imported, iter(sorted(graph[imported]))))
                    break
                if imported in open_modules:
                    low[module] = min(low[module], index[imported])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[module])
                if low[module] == index[module]:
                    first = open_modules.index(module)
                    component = open_modules[first:]
                    del open_modules[first:]
                    if len(component) > 1:
                        cycles.append(sorted(component))
    return cycles


def write_modules(root: Path, sources: Mapping[str, str]) -> None:
    for name, source in sources.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)


def test_no_import_cycle_joins_modules(root: Path) -> None:
    assert import_cycles(import_graph(root)) == []


def test_import_graph_covers_every_package(root: Path) -> None:
    graph = import_graph(root)
    packages = {path.parent.name for name in ROOTS for path in (root / name).glob("*/__init__.py")}
    assert {module.split(".")[0] for module in graph} == packages
    assert "asterism.catalog_client" in graph["asterism.graph"], "an import at the top"
    assert "asterism.backup" in graph["asterism.space_tools"], (
        "imports for type checkers, in functions"
    )
    assert "asterism.graph" in graph["asterism.aio.async_clients"], "imports of a stub file"
    assert "asterism_proto.v1.common_pb2" in graph["asterism.records.catalog"], "generated modules"


def test_planted_cycle_is_found(tmp_path: Path) -> None:
    """The cycle has a type-checking import, a function's import and a relative one."""
    write_modules(
        tmp_path,
        {
            "client/pkg/__init__.py": "",
            "client/pkg/one.py": "from __future__ import annotations\n"
            "from typing import TYPE_CHECKING\n"
            "if TYPE_CHECKING:\n    from pkg.two import Two\n",
            "client/pkg/two.py": "def load() -> None:\n    import pkg.three\n",
            "services/lone/__init__.py": "from pkg import one\n",
            "client/pkg/three.py": "from . import one\n",
        },
    )
    assert import_cycles(import_graph(tmp_path)) == [["pkg.one", "pkg.three", "pkg.two"]]


def test_cycle_over_a_package_that_reexports_is_found(tmp_path: Path) -> None:
    """An import of a module runs the packages around it, with their imports."""
    write_modules(
        tmp_path,
        {
            "proto/pkg/__init__.py": "",
            "proto/pkg/inner/__init__.py": "from pkg.inner.upper import Upper\n",
            "proto/pkg/inner/upper.py": "from pkg.user import User\n",
            "proto/pkg/inner/lower.py": "",
            "proto/pkg/user.py": "from pkg.inner.lower import Lower\n",
        },
    )
    cycles = import_cycles(import_graph(tmp_path))
    assert cycles == [["pkg.inner", "pkg.inner.upper", "pkg.user"]]


def test_cycle_in_a_stub_file_is_found(tmp_path: Path) -> None:
    write_modules(
        tmp_path,
        {
            "client/pkg/__init__.py": "",
            "client/pkg/one.py": "",
            "client/pkg/one.pyi": "from pkg.two import Two\n",
            "client/pkg/two.py": "from pkg.one import One\n",
        },
    )
    assert import_cycles(import_graph(tmp_path)) == [["pkg.one", "pkg.two"]]


def test_imports_without_a_cycle_are_accepted(tmp_path: Path) -> None:
    """Sibling modules import each other's neighbors, and a package reexports its own module."""
    write_modules(
        tmp_path,
        {
            "client/pkg/__init__.py": "from pkg.top import Top\n",
            "client/pkg/top.py": "from pkg.left import Left\nfrom pkg.right import Right\n",
            "client/pkg/left.py": "from pkg.base import Base\nimport json.decoder\n",
            "client/pkg/right.py": "from pkg import base\n",
            "client/pkg/base.py": "",
        },
    )
    graph = import_graph(tmp_path)
    assert graph["pkg.top"] == {"pkg.left", "pkg.right"}
    assert graph["pkg.right"] == graph["pkg.left"] == {"pkg.base"}
    assert import_cycles(graph) == []
