"""Generator of ``asterism/aio/async_clients.pyi``, the stub of the asynchronous classes.

It derives their signatures from those of the synchronous client. ``python -m
tests.kit.async_stubs`` (in `make stubs`) writes the file; `tests/structure` checks that it is
current.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
import textwrap
import typing
from pathlib import Path
from typing import Any

from asterism.aio import async_clients, async_wrapper
from tests.kit.waiting import HANG_S

FOLDER = Path(async_clients.__file__).parent
HEAD = '''"""The client on an event loop, for type checkers. Written by `make stubs`."""\n\n'''
WRAPPER_NAMES = {inner.__name__: face.__name__ for inner, face in async_wrapper._WRAPPERS.items()}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class _WrapperNames(ast.NodeTransformer):
    """Replace the names of wrapped classes by their wrappers', without type parameters."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in WRAPPER_NAMES:
            return self.visit_Name(node.value)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(
            id=WRAPPER_NAMES.get(node.id, {"Iterator": "AsyncIterator"}.get(node.id, node.id))
        )


def _read(function: Any) -> Function:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, Function)
    return node


def _without_body(node: Function) -> list[ast.stmt]:
    """Return the body of a stub; docstrings stay with the methods themselves."""
    return [ast.Expr(ast.Constant(...))]


def _wrapper_method(function: Any, *, is_call: bool) -> Function:
    """Return a method of the client with the signature of its wrapper."""
    node = _read(function)
    returned = None if node.returns is None else _WrapperNames().visit(node.returns)
    kind = ast.AsyncFunctionDef if is_call else ast.FunctionDef
    return kind(
        name=node.name,
        args=node.args,
        body=_without_body(node),
        decorator_list=node.decorator_list,
        returns=returned,
        type_comment=None,
    )


def _members(wrapper: type, wrapped: type) -> list[ast.stmt]:
    statements: list[ast.stmt] = []
    for name, member in async_wrapper.public_members(wrapped).items():
        if isinstance(member, property):
            statements.append(_wrapper_method(member.fget, is_call=False))
            continue
        is_call = inspect.iscoroutinefunction(wrapper.__dict__[name])
        overloads = typing.get_overloads(member)
        statements += [
            _wrapper_method(function, is_call=is_call) for function in overloads or [member]
        ]
    return statements


def _own_members(node: ast.ClassDef) -> list[ast.stmt]:
    """Return a wrapper's own members: read-only attributes and special methods."""
    statements: list[ast.stmt] = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            statements += ast.parse(
                f"@property\ndef {ast.unparse(part.target)}(self) -> "
                f"{ast.unparse(part.annotation)}: ..."
            ).body
        elif isinstance(part, Function):
            part.body = _without_body(part)
            statements.append(part)
    return statements


def _collect_imports(modules: list[str]) -> dict[str, str]:
    """Return the import statement of each name that modules import."""
    import_statements: dict[str, str] = {}
    for module in modules:
        source = Path(importlib.import_module(module).__file__ or "").read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                import_statements |= {
                    alias.asname or alias.name: f"from {node.module} import {ast.unparse(alias)}"
                    for alias in node.names
                }
            elif isinstance(node, ast.Import):
                import_statements |= {
                    alias.asname or alias.name: f"import {ast.unparse(alias)}"
                    for alias in node.names
                }
    for module in modules:
        tree = ast.parse(Path(importlib.import_module(module).__file__ or "").read_text())
        for node in tree.body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            names = [target.id for target in targets if isinstance(target, ast.Name)] + (
                [node.name] if isinstance(node, ast.ClassDef) else []
            )
            import_statements |= {name: f"from {module} import {name}" for name in names}
    return import_statements


def stub_text() -> str:
    """Return the formatted text of the stub file."""
    tree = ast.parse(inspect.getsource(async_clients))
    classes: list[ast.stmt] = []
    modules = set()
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        wrapper = getattr(async_clients, node.name)
        wrapped = next(
            (
                wrapped
                for wrapped, wrapper_class in async_wrapper._WRAPPERS.items()
                if wrapper_class is wrapper
            ),
            None,
        )
        body = [*_own_members(node), *(_members(wrapper, wrapped) if wrapped is not None else [])]
        if wrapped is not None:
            modules |= {
                cls.__module__ for cls in wrapped.__mro__ if cls.__module__.startswith("asterism")
            }
        if node.name == "ClosingWrapper":
            body += ast.parse("async def close(self) -> None:\n    ...").body
        classes.append(
            ast.ClassDef(
                name=node.name, bases=node.bases, keywords=[], body=body, decorator_list=[]
            )
        )
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef)} | {"Inner"}
    used_names = {
        node.id for cls in classes for node in ast.walk(cls) if isinstance(node, ast.Name)
    }
    import_statements = _collect_imports([*sorted(modules), "asterism.aio.async_clients"])
    imports = sorted(
        {import_statements[name] for name in used_names - defined if name in import_statements}
        | {"from typing import TypeVar"}
    )
    body_text = "\n\n".join(ast.unparse(ast.fix_missing_locations(cls)) for cls in classes)
    return _formatted(f'{HEAD}{chr(10).join(imports)}\n\nInner = TypeVar("Inner")\n\n{body_text}\n')


def _formatted(source: str) -> str:
    for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format"]):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "ruff",
                *command,
                "--stdin-filename",
                str(FOLDER / "async_clients.pyi"),
                "-",
            ],
            input=source,
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_S,
        )
        source = done.stdout
    return source


if __name__ == "__main__":
    (FOLDER / "async_clients.pyi").write_text(stub_text())
