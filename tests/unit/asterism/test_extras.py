"""Imports of optional packages fail with the line that installs them."""

from __future__ import annotations

import copy

import pytest

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


def test_the_error_survives_a_copy() -> None:
    """Executors send errors from one process to another."""
    error = MissingExtra("graph files: packages are missing", extra="ingest", name="pyarrow")
    copied = copy.copy(error)
    assert (str(copied), copied.extra, copied.name) == (str(error), "ingest", "pyarrow")
