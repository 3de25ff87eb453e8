"""Features that lie beside the edges, at both ends: those of indexes, a value per slot of each
adjacency.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.arrays.sort_keys import sort_keys
from asterism_model.schema import EdgeType
from storaged.build.block_reader import Sections
from storaged.build.time_index import time_bits
from storaged.build.weights import COLUMN_PREFIX


def edge_column_files(edge_type: EdgeType) -> list[tuple[str, np.dtype[Any]]]:
    """What the file of each such feature is called behind its adjacency's name, and its dtype."""
    numbers = [edge_type.features.index(edge_type.feature(name)) for name in edge_type.indexed]
    return [(f"n{number}", np.dtype(edge_type.features[number].dtype)) for number in numbers]


def edge_column_values(
    edge_type: EdgeType, sections: Sections, rows: int
) -> tuple[NDArray[Any], ...]:
    """Their values at each edge of a block, 0 where it came without, as features have it."""
    columns = (sections.get(f"{COLUMN_PREFIX}{name}") for name in edge_type.indexed)
    return tuple(
        np.zeros(rows, dtype) if values is None else values.astype(dtype, copy=False)
        for values, (_, dtype) in zip(columns, edge_column_files(edge_type), strict=True)
    )


def value_bits(values: NDArray[Any], number: int) -> NDArray[np.uint32]:
    """What `storaged.build.block_kernels.mix_records` mixes of the values of the ``number``-th such
    feature: so that they can not change places.
    """
    return time_bits(sort_keys(values) ^ np.int64(number + 1))
