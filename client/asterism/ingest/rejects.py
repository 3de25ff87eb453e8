"""What becomes of bad rows: the first one ends a load, or all are counted and written to a file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from asterism.formats.chunks import BadRow
from asterism_proto.errors import InvalidRequest

COLUMNS = ("file", "row", "column", "value", "reason")


class RejectsFile:
    """Counts bad rows; writes them to ``path`` (CSV), which is made at the first, or refuses the
    first where there is no path.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.count = 0
        self._file: IO[str] | None = None
        self._writer: Any = None

    def record(self, rows: Sequence[BadRow]) -> None:
        """Note rows that were left out."""
        if not rows:
            return
        if self.path is None:
            more = f" ({len(rows) - 1} more near by)" if len(rows) > 1 else ""
            raise InvalidRequest(
                f"{rows[0]}{more}; repair the input, or leave such rows out with on_bad_rows='skip'"
            )
        if self._file is None:
            self._file = self.path.open("w", newline="", encoding="utf-8")
            self._writer = csv.writer(self._file)
            self._writer.writerow(COLUMNS)
        self._writer.writerows(
            (row.file, row.row, row.column, row.value, row.reason) for row in rows
        )
        self.count += len(rows)

    def close(self) -> None:
        """Finish the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
