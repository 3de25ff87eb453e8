"""Edges that a request excludes: calls of neighbors treat them as if they did not exist.

They travel as four sections of a request's frame, next to its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.errors import InvalidRequest

ANY_EDGE_ID = -1
"""Edge id that stands for every edge of a type from the source to the destination."""
EXCLUDED_SOURCES = "exclude.src"
"""Name of the section of sources."""
MAX_EXCLUDED_EDGES = 1 << 20
"""Largest number of entries of one request."""
_SECTIONS = (
    ("exclude.types", "int32"),
    (EXCLUDED_SOURCES, "int64"),
    ("exclude.dst", "int64"),
    ("exclude.eids", "int64"),
)
SECTION_NAMES = tuple(name for name, _ in _SECTIONS)
"""Names of the sections: edge types, sources, destinations and edge ids."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExcludedEdges:
    """Excluded edges, one entry for an edge or for all parallel edges of a pair of nodes.

    An entry without such an edge has no effect; nor has an entry with a negative node id.
    """

    types: NDArray[np.int32]
    """Edge types: int32, shape (k,)."""
    src: NDArray[np.int64]
    """Sources: int64, shape (k,)."""
    dst: NDArray[np.int64]
    """Destinations: int64, shape (k,)."""
    eids: NDArray[np.int64]
    """Edge ids: int64, shape (k,); `ANY_EDGE_ID` for all edges from source to destination."""

    def __len__(self) -> int:
        return len(self.types)

    @classmethod
    def concatenate(cls, pieces: Sequence[ExcludedEdges]) -> ExcludedEdges:
        """Return the entries of all pieces."""
        return cls(
            types=np.concatenate([piece.types for piece in pieces]),
            src=np.concatenate([piece.src for piece in pieces]),
            dst=np.concatenate([piece.dst for piece in pieces]),
            eids=np.concatenate([piece.eids for piece in pieces]),
        )

    def take(self, rows: NDArray[Any]) -> ExcludedEdges:
        """Return some entries, selected by positions or by a mask."""
        return ExcludedEdges(
            types=self.types[rows], src=self.src[rows], dst=self.dst[rows], eids=self.eids[rows]
        )

    def sections(self) -> dict[str, NDArray[Any]]:
        """Return the sections of a request."""
        return dict(zip(SECTION_NAMES, (self.types, self.src, self.dst, self.eids), strict=True))

    @classmethod
    def from_sections(
        cls, arrays: Mapping[str, NDArray[Any]], type_count: int
    ) -> ExcludedEdges | None:
        """Return the excluded edges of a request; None if it excludes none.

        Parameters
        ----------
        arrays : mapping of str to ndarray
            Sections of the request.
        type_count : int
            Number of edge types of the schema.

        Raises
        ------
        InvalidRequest
            A section is missing, has another type or length, has a type id that is not in the
            schema, or there are more than `MAX_EXCLUDED_EDGES` entries.
        """
        present = [name for name in SECTION_NAMES if name in arrays]
        if not present:
            return None
        columns = []
        for name, dtype in _SECTIONS:
            column = arrays.get(name)
            if column is None:
                raise InvalidRequest(f"{name}: expected this section, because {present[0]} is sent")
            if column.dtype != np.dtype(dtype) or column.ndim != 1:
                raise InvalidRequest(
                    f"{name} of {column.dtype} and shape {list(column.shape)}: expected {dtype} in "
                    "one dimension"
                )
            if len(column) != len(arrays[present[0]]):
                raise InvalidRequest(
                    f"{name} of length {len(column)}: expected {len(arrays[present[0]])}, as "
                    f"{present[0]}"
                )
            columns.append(column)
        types, src, dst, eids = columns
        check_entry_count(len(types))
        if len(types) and not 0 <= int(types.min()) <= int(types.max()) < type_count:
            position = int(np.argmax((types < 0) | (types >= type_count)))
            raise InvalidRequest(
                f"exclude.types[{position}]={types[position]}: expected an edge type of the "
                f"schema, 0 to {type_count - 1}"
            )
        return cls(types=types, src=src, dst=dst, eids=eids) if len(types) else None


def excludes_edges(arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Return whether a request with these sections excludes edges."""
    return any(name in arrays for name in SECTION_NAMES)


def check_entry_count(count: int) -> None:
    """Raise InvalidRequest if a request excludes too many edges."""
    if count > MAX_EXCLUDED_EDGES:
        raise InvalidRequest(
            f"exclude with {count} edges: expected at most {MAX_EXCLUDED_EDGES} in one call; use "
            "smaller batches"
        )
