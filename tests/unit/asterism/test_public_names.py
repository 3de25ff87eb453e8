"""Tests of the names that the package and its records offer."""

from __future__ import annotations

import asterism
from asterism import records


def test_dir_lists_public_names_only() -> None:
    names = set(dir(asterism))
    assert set(asterism.__all__) <= names
    assert names - set(asterism.__all__) <= {
        "aio",
        "backup",
        "dgl",
        "export",
        "graphbolt",
        "ingest",
        "pyg",
        "saint",
        "tensorflow",
        "torch",
    }
    assert dir(records) == sorted(records.__all__)


def test_dir_lists_optional_modules_once_imported() -> None:
    import asterism.saint

    assert "saint" in dir(asterism)
    assert all(hasattr(asterism, name) for name in dir(asterism))


def test_old_names_of_asynchronous_classes_keep_working() -> None:
    from asterism import aio

    for old, current in aio._OLD_NAMES.items():
        assert getattr(aio, old) is getattr(aio, current)
        assert current in aio.__all__
