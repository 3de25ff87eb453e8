"""Writes ``asterism/aio/faces.pyi``: the asynchronous classes as readers and type checkers see them, from the signatures of the client's own.

``python -m tests.kit.async_stubs`` (in `make stubs`) writes it; `tests/house` holds it to what this makes.
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

from asterism.aio import faces, facing
from tests.kit.waiting import HANG_S

FOLDER = Path(faces.__file__).parent
HEAD = '''"""The client's classes on an event loop, as type checkers see them. Written by `make stubs`; not by hand."""\n\n'''
SYNC = {inner.__name__: face.__name__ for inner, face in facing._FACES.items()}
Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Faced(ast.NodeTransformer):
    """Names of classes that have a face, as the face's."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(id=SYNC.get(node.id, {"Iterator": "AsyncIterator"}.get(node.id, node.id)))


def _read(function: Any) -> Function:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, Function)
    return node


def _bare(node: Function) -> list[ast.stmt]:
    """A body without what it does."""
    told = ast.get_docstring(node, clean=False)
    return [ast.Expr(ast.Constant(told or ...))]


def _declared(function: Any, *, is_call: bool) -> Function:
    """A method of the client as its face has it."""
    node = _read(function)
    returned = None if node.returns is None else _Faced().visit(node.returns)
    kind = ast.AsyncFunctionDef if is_call else ast.FunctionDef
    return kind(name=node.name, args=node.args, body=_bare(node), decorator_list=node.decorator_list, returns=returned, type_comment=None)


def _members(face: type, inner: type) -> list[ast.stmt]:
    made: list[ast.stmt] = []
    for name, member in facing.members(inner).items():
        if isinstance(member, property):
            made.append(_declared(member.fget, is_call=False))
            continue
        is_call = inspect.iscoroutinefunction(face.__dict__[name])
        overloads = typing.get_overloads(member)
        made += [_declared(function, is_call=is_call) for function in overloads or [member]]
    return made


def _own(node: ast.ClassDef) -> list[ast.stmt]:
    """What a face says itself: its attributes, read only, and special methods."""
    made: list[ast.stmt] = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign):
            made += ast.parse(f"@property\ndef {ast.unparse(part.target)}(self) -> {ast.unparse(part.annotation)}: ...").body
        elif isinstance(part, Function):
            part.body = _bare(part)
            made.append(part)
    return made


def _homes(modules: list[str]) -> dict[str, str]:
    """Where names of modules come from, as import statements."""
    homes: dict[str, str] = {}
    for module in modules:
        source = Path(importlib.import_module(module).__file__ or "").read_text()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                homes |= {alias.asname or alias.name: f"from {node.module} import {ast.unparse(alias)}" for alias in node.names}
            elif isinstance(node, ast.Import):
                homes |= {alias.asname or alias.name: f"import {ast.unparse(alias)}" for alias in node.names}
    for module in modules:
        tree = ast.parse(Path(importlib.import_module(module).__file__ or "").read_text())
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            names = [target.id for target in targets if isinstance(target, ast.Name)] + ([node.name] if isinstance(node, ast.ClassDef) else [])
            homes |= {name: f"from {module} import {name}" for name in names}
    return homes


def text() -> str:
    """The stub file, formatted."""
    tree = ast.parse(inspect.getsource(faces))
    classes: list[ast.stmt] = []
    modules = set()
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        face = getattr(faces, node.name)
        inner = next((inner for inner, made in facing._FACES.items() if made is face), None)
        body: list[ast.stmt] = [ast.Expr(ast.Constant(ast.get_docstring(node, clean=False)))]
        body += [*_own(node), *(_members(face, inner) if inner is not None else [])]
        if inner is not None:
            modules |= {cls.__module__ for cls in inner.__mro__ if cls.__module__.startswith("asterism")}
        if node.name == "Closing":
            body += ast.parse("async def close(self) -> None:\n    ...").body
        classes.append(ast.ClassDef(name=node.name, bases=node.bases, keywords=[], body=body, decorator_list=[]))
    here = {node.name for node in tree.body if isinstance(node, ast.ClassDef)} | {"Inner"}
    used = {node.id for cls in classes for node in ast.walk(cls) if isinstance(node, ast.Name)}
    homes = _homes([*sorted(modules), "asterism.aio.faces"])
    imports = sorted({homes[name] for name in used - here if name in homes} | {"from typing import TypeVar"})
    body_text = "\n\n".join(ast.unparse(ast.fix_missing_locations(cls)) for cls in classes)
    return _formatted(f'{HEAD}{chr(10).join(imports)}\n\nInner = TypeVar("Inner")\n\n{body_text}\n')


def _formatted(source: str) -> str:
    for command in (["check", "--fix-only", "--quiet", "--select", "I,F401"], ["format"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(FOLDER / "faces.pyi"), "-"],
            input=source,
            capture_output=True,
            text=True,
            check=True,
            timeout=HANG_S,
        )
        source = done.stdout
    return source


if __name__ == "__main__":
    (FOLDER / "faces.pyi").write_text(text())
