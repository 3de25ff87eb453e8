"""Tests of docstrings: public calls have all sections of numpydoc."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from asterism import Client, Graph

MODULES = ("ops", "saint", "ingest", "export", "backup", "verification", "formats", "pglbox")
SECTION = re.compile(
    r"^(Parameters|Returns|Yields|Raises|Examples)\n-{3,}\n(.*?)(?=^\w+\n-{3,}\n|\Z)",
    re.MULTILINE | re.DOTALL,
)
WITHOUT_ERRORS = {"Client.close", "Graph.close"}
"""Calls that raise no error of their own."""


def public_calls() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the methods of clients and graphs, and the functions of public modules."""
    for owner in (Client, Graph):
        for name, member in inspect.getmembers(owner, callable):
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", inspect.unwrap(member)
    yield from (
        (f"asterism.{name}", getattr(import_module("asterism"), name))
        for name in ("open", "connect")
    )
    for module in (import_module(f"asterism.{name}") for name in MODULES):
        for name in module.__all__:
            if inspect.isfunction(member := getattr(module, name)):
                yield f"{module.__name__}.{name}", inspect.unwrap(member)


CALLS = dict(public_calls())


def test_calls_are_found() -> None:
    assert {"Graph.sample_nodes", "Client.spaces", "asterism.ops.gather"} <= set(CALLS)
    assert len(CALLS) > 90


@pytest.mark.parametrize("name", CALLS)
def test_docstring_has_all_sections(name: str) -> None:
    call = CALLS[name]
    signature = inspect.signature(call)
    sections = dict(SECTION.findall(inspect.getdoc(call) or ""))
    described = re.findall(
        r"^(\*{0,2}\w[\w, *\n]*?)(?: : |$)", sections.get("Parameters", ""), re.M
    )
    names = {word.strip(" *") for line in described for word in line.replace("\n", " ").split(",")}
    parameters = {p for p in signature.parameters if p != "self" and not p.startswith("_")}
    assert parameters <= names
    if signature.return_annotation not in (None, "None", "NoReturn", inspect.Signature.empty):
        assert {"Returns", "Yields"} & set(sections)
    assert "Examples" in sections
    assert "Raises" in sections or name in WITHOUT_ERRORS
