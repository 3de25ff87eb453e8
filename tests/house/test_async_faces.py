"""The asynchronous client has every public name of the client, with its signature and docstring, and nothing is written twice."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest
from tests.kit import async_stubs

import asterism
from asterism.aio import faces, facing
from asterism.session import Session

FACES = sorted(facing._FACES.items(), key=lambda pair: pair[0].__name__)
WALKED = [pytest.param(inner, face, name, id=f"{face.__name__}.{name}") for inner, face in FACES for name in facing.members(inner)]
ASK_NOBODY = {
    "AsyncGraph": {"at", "metapaths", "pin"},
    "AsyncNodePasses": {"state_dict", "load_state_dict", "reshard"},
    "AsyncClusterPasses": {"state_dict", "load_state_dict", "reshard"},
    "AsyncEdgePasses": {"state_dict", "load_state_dict", "reshard"},
    "AsyncPairPasses": {"state_dict", "load_state_dict", "reshard"},
}


def test_the_signatures_in_the_tree_are_those_of_the_client() -> None:
    held = Path(faces.__file__).with_suffix(".pyi").read_text()
    assert held == async_stubs.text(), "`make stubs` was not run after a public method changed"


@pytest.mark.parametrize(("inner", "face", "name"), WALKED)
def test_every_public_name_is_there_with_the_same_arguments_and_words(inner: type, face: type, name: str) -> None:
    sync: Any = inspect.getattr_static(inner, name)
    made: Any = face.__dict__[name]
    assert inspect.getdoc(made) == inspect.getdoc(sync)
    assert inspect.getdoc(made), "it has no docstring"
    if isinstance(sync, property):
        assert isinstance(made, property)
        return
    assert inspect.signature(made) == inspect.signature(sync)
    plain = name in ASK_NOBODY.get(face.__name__, ()) or inspect.isgeneratorfunction(sync)
    assert inspect.iscoroutinefunction(made) is not plain


def test_the_walk_goes_over_the_whole_client() -> None:
    names = {f"{face.__name__}.{name}" for inner, face in FACES for name in facing.members(inner)}
    public = {name for name in dir(asterism.Graph) if not name.startswith("_")} - {"client"}
    assert {f"AsyncGraph.{name}" for name in public} <= names
    assert len([name for name in names if name.startswith(("AsyncGraph.", "AsyncClient."))]) > 55


def test_whatever_a_public_call_gives_that_makes_calls_has_a_face() -> None:
    given: set[str] = set()
    for inner, _ in FACES:
        for member in facing.members(inner).values():
            function = member.fget if isinstance(member, property) else member
            tree = ast.parse(str(inspect.signature(function).return_annotation))
            given |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    modules = [inspect.getmodule(cls) for inner, _ in FACES for cls in inner.__mro__]
    classes = {name: getattr(module, name) for name in given for module in modules if inspect.isclass(getattr(module, name, None))}
    ours = {cls for cls in classes.values() if cls.__module__.startswith("asterism.") and not dataclasses.is_dataclass(cls)}
    assert {cls.__name__ for cls in ours if "Client" in cls.__name__ or "Graph" in cls.__name__}
    assert {cls.__name__ for cls in ours if cls not in facing._FACES} == set()


def test_no_call_is_written_in_the_asynchronous_client(root: Path) -> None:
    text = "".join(path.read_text() for path in (root / "client/asterism/aio").glob("*.py"))
    assert "Request(" not in text, "a request is made in one place"
    assert Session.__name__ not in text
