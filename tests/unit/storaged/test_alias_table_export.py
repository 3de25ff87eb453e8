"""Writers of exported tables: the bytes of a file, and what an export imports."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from tests.kit.waiting import HANG_S

from storaged.store.alias_table_store import FINAL_DTYPES, Columns
from storaged.version_tasks.alias_table_export import COLUMN_NAMES, _HashingFile, _writers

PROGRAM = """
import io, sys
import numpy as np
from storaged.store.alias_table_store import FINAL_DTYPES
from storaged.version_tasks.alias_table_export import _HashingFile, _writers
for write in _writers().values():
    write(_HashingFile(io.BytesIO()), iter([tuple(np.arange(9).astype(t) for t in FINAL_DTYPES)]))
print("pandas" in sys.modules)
"""


def columns(rows: int) -> Columns:
    return tuple(np.arange(rows).astype(dtype) for dtype in FINAL_DTYPES)


def test_a_parquet_file_holds_the_columns_of_all_blocks() -> None:
    data = io.BytesIO()
    _writers()["parquet"](_HashingFile(data), iter([columns(9), columns(4)]))
    table = pyarrow.parquet.read_table(data)
    assert tuple(table.column_names) == COLUMN_NAMES
    assert [field.type.to_pandas_dtype() for field in table.schema] == [
        dtype.type for dtype in FINAL_DTYPES
    ]
    assert not any(field.nullable for field in table.schema)
    for column in table.columns:
        assert column.combine_chunks().equals(pa.array([*range(9), *range(4)], column.type))


def test_an_export_imports_no_pandas() -> None:
    """Importing it takes a third of a second of a core, in the process of every export."""
    printed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=HANG_S, check=True
    ).stdout
    assert printed.split() == ["False"]
