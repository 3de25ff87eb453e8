"""Tests that the asynchronous client mirrors the public names of the client.

Signatures and docstrings are equal, and no code is duplicated.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest
from tests.kit import async_stubs

import asterism
from asterism.aio import async_clients, async_wrapper
from asterism.client_state import Session

WRAPPERS = sorted(async_wrapper._WRAPPERS.items(), key=lambda pair: pair[0].__name__)
WRAPPED_MEMBERS = [
    pytest.param(inner, face, name, id=f"{face.__name__}.{name}")
    for inner, face in WRAPPERS
    for name in async_wrapper.public_members(inner)
]
LOCAL_MEMBERS = {
    "AsyncGraph": {"at", "metapaths", "pin"},
    "AsyncNodeEpochs": {"state_dict", "load_state_dict", "reshard"},
    "AsyncClusterEpochs": {"state_dict", "load_state_dict", "reshard"},
    "AsyncEdgeEpochs": {"state_dict", "load_state_dict", "reshard"},
    "AsyncPairEpochs": {"state_dict", "load_state_dict", "reshard"},
}


def test_stub_file_matches_the_client() -> None:
    stub_text = Path(async_clients.__file__).with_suffix(".pyi").read_text()
    assert stub_text == async_stubs.stub_text(), (
        "`make stubs` was not run after a public method changed"
    )


@pytest.mark.parametrize(("inner", "face", "name"), WRAPPED_MEMBERS)
def test_public_name_has_the_same_arguments_and_docstring(
    inner: type, face: type, name: str
) -> None:
    original: Any = inspect.getattr_static(inner, name)
    wrapped: Any = face.__dict__[name]
    assert inspect.getdoc(wrapped) == inspect.getdoc(original)
    assert inspect.getdoc(wrapped), "it has no docstring"
    if isinstance(original, property):
        assert isinstance(wrapped, property)
        return
    assert inspect.signature(wrapped) == inspect.signature(original)
    is_synchronous = name in LOCAL_MEMBERS.get(face.__name__, ()) or inspect.isgeneratorfunction(
        original
    )
    assert inspect.iscoroutinefunction(wrapped) is not is_synchronous


def test_comparison_covers_the_whole_client() -> None:
    names = {
        f"{wrapper.__name__}.{name}"
        for inner, wrapper in WRAPPERS
        for name in async_wrapper.public_members(inner)
    }
    public = {name for name in dir(asterism.Graph) if not name.startswith("_")} - {"client"}
    assert {f"AsyncGraph.{name}" for name in public} <= names
    assert len([name for name in names if name.startswith(("AsyncGraph.", "AsyncClient."))]) > 55


def test_returned_objects_that_make_calls_have_wrappers() -> None:
    returned_names: set[str] = set()
    for inner, _ in WRAPPERS:
        for member in async_wrapper.public_members(inner).values():
            function = member.fget if isinstance(member, property) else member
            tree = ast.parse(str(inspect.signature(function).return_annotation))
            returned_names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    modules = [inspect.getmodule(cls) for inner, _ in WRAPPERS for cls in inner.__mro__]
    classes = {
        name: getattr(module, name)
        for name in returned_names
        for module in modules
        if inspect.isclass(getattr(module, name, None))
    }
    own_classes = {
        cls
        for cls in classes.values()
        if cls.__module__.startswith("asterism.") and not dataclasses.is_dataclass(cls)
    }
    assert {
        cls.__name__ for cls in own_classes if "Client" in cls.__name__ or "Graph" in cls.__name__
    }
    assert {cls.__name__ for cls in own_classes if cls not in async_wrapper._WRAPPERS} == set()


def test_asynchronous_client_builds_no_requests(root: Path) -> None:
    text = "".join(path.read_text() for path in (root / "client/asterism/aio").glob("*.py"))
    assert "Request(" not in text, "a request is made in one place"
    assert Session.__name__ not in text
