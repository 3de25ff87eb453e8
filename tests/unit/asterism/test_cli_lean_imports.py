from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.kit.waiting import HANG_S

from asterism.cli.lean_imports import packages_hidden

pytest.importorskip("pandas")


def test_a_hidden_package_cannot_be_imported_meanwhile() -> None:
    sys.modules.pop("this", None)
    with packages_hidden("this", "json"):
        with pytest.raises(ImportError):
            __import__("this")
        assert __import__("json") is sys.modules["json"], "hidden although it was imported"
    assert "this" not in sys.modules
    assert "json" in sys.modules


def assert_runs(program: str) -> None:
    completed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert completed.returncode == 0, completed.stderr


def test_a_command_seldom_collects_garbage() -> None:
    assert_runs(
        "import gc\n"
        "from asterism.cli import main\n"
        "try:\n    main(['--version'])\n"
        "finally:\n    assert gc.get_threshold()[0] >= 10_000, gc.get_threshold()\n"
    )


def test_arrow_of_a_command_does_not_import_pandas() -> None:
    assert_runs(
        "import sys\n"
        "from asterism.cli.lean_imports import import_arrow_without_pandas\n"
        "import_arrow_without_pandas()\n"
        "import pyarrow\n"
        "assert pyarrow.nulls(1, pyarrow.int64()).fill_null(7).to_pylist() == [7]\n"
        "assert 'pandas' not in sys.modules\n"
        "import pandas\n"
    )


def test_a_load_of_csv_imports_neither_parsers_nor_scipy_nor_parquet(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("id\n1\n2\n")
    (tmp_path / "graph.yaml").write_text("nodes:\n  n: {files: n.csv, id: id}\n")
    arguments = ["--path", f"{tmp_path}/folder", "load", "g", f"{tmp_path}/graph.yaml", "--create"]
    assert_runs(
        "import sys\n"
        "from asterism.cli import main\n"
        f"try:\n    main({arguments!r})\n"
        "finally:\n"
        "    unneeded = {'lark', 'scipy', 'pyarrow.parquet'} & set(sys.modules)\n"
        "    assert not unneeded, unneeded\n"
    )
