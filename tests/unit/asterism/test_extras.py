"""Tests that failing imports of optional packages show the command that installs them."""

from __future__ import annotations

import copy
import sys
from importlib import import_module

import numpy as np
import pytest

from asterism.euler.frameworks import framework_named
from asterism.extras import MissingExtra, required


def test_a_missing_package_is_named_with_its_extra() -> None:
    with (
        pytest.raises(
            MissingExtra, match=r"asterism\.open: .*asterism-graph\[server\].*'rocksdict'"
        ) as raised,
        required("server", "asterism.open"),
    ):
        raise ModuleNotFoundError("No module named 'rocksdict'", name="rocksdict")
    assert isinstance(raised.value, ImportError)
    assert (raised.value.extra, raised.value.name) == ("server", "rocksdict")


def test_a_failed_import_of_our_own_is_not_translated() -> None:
    with pytest.raises(ImportError) as raised, required("export", "asterism.export"):
        raise ImportError("cannot import name 'x'", name="asterism.export.plan")
    assert not isinstance(raised.value, MissingExtra)


def test_the_innermost_missing_extra_is_reported() -> None:
    with (
        pytest.raises(MissingExtra, match=r"asterism-graph\[ingest\]"),
        required("cli", "the command"),
        required("ingest", "graph files"),
    ):
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("asterism.torch", "torch", "torch"),
        ("asterism.pyg", "torch_geometric", "pyg"),
        ("asterism.dgl", "dgl", "dgl"),
        ("asterism.graphbolt", "dgl", "dgl"),
        ("asterism.tensorflow", "tensorflow", "tensorflow"),
    ],
)
def test_an_adapter_names_the_extra_of_its_framework(
    adapter: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{adapter}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingExtra, match=rf"^{adapter}: .*asterism-graph\[{extra}\].*{package}"
    ) as raised:
        import_module(adapter)
    assert raised.value.extra == extra
    assert str(raised.value.name).partition(".")[0] == package


@pytest.mark.parametrize("name", ["torch", "tensorflow"])
def test_operators_of_euler_name_the_extra_of_their_framework(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    framework = framework_named(name)
    with pytest.raises(MissingExtra, match=rf"asterism-graph\[{name}\]"):
        framework.sparse(np.zeros((1, 2), np.int64), np.ones(1), (2, 2))


def test_the_error_survives_a_copy() -> None:
    """Executors send errors from one process to another."""
    error = MissingExtra("graph files: packages are missing", extra="ingest", name="pyarrow")
    copied = copy.copy(error)
    assert (str(copied), copied.extra, copied.name) == (str(error), "ingest", "pyarrow")
