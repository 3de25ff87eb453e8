"""Conversion of node labels to ids: integers are kept, other labels are numbered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.records.samples import Ids
from asterism_proto.errors import InvalidRequest

_MAX_ID = (1 << 63) - 1


class NodeLabels:
    """Labels of the nodes of one type.

    Parameters
    ----------
    owner : str
        Name of the type, for error messages.
    labels : sequence
        Distinct labels. If all are integers, they are the ids; otherwise nodes are numbered 0, 1,
        2, ... in this order.
    """

    def __init__(self, owner: str, labels: Sequence[Hashable]) -> None:
        self.count = len(labels)
        kinds = set(map(type, labels))
        self.is_integer = all(
            issubclass(kind, int | np.integer) and kind is not bool for kind in kinds
        )
        if self.is_integer:
            wrong = next(
                (
                    label
                    for label in labels
                    if not 0 <= label <= _MAX_ID  # type: ignore[operator]  # they are integers
                ),
                None,
            )
            if wrong is not None:
                raise InvalidRequest(
                    f"{owner}: node {wrong!r}: expected an id from 0 to 2^63 - 1; relabel the "
                    "nodes with strings, or with integers from 0"
                )
            self._index: dict[Hashable, int] = {}
            self.ids: Ids | None = np.fromiter(labels, np.int64, self.count)
            if np.array_equal(self.ids, np.arange(self.count)):
                self.ids = None
            self.names: NDArray[Any] | None = None
        else:
            self._index = {label: i for i, label in enumerate(labels)}
            self.ids, self.names = None, np.fromiter(labels, object, self.count)

    def ids_of(self, labels: Iterable[Hashable], count: int) -> Ids:
        """Return the ids of labels, ndarray of int64, shape (count,)."""
        return np.fromiter(
            labels if self.is_integer else map(self._index.__getitem__, labels), np.int64, count
        )


def attribute_lists(rows: Sequence[dict[Any, Any]], owner: str) -> dict[str, list[Any]]:
    """Return the attributes of rows of dicts as lists, with None where a row has none."""
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if not isinstance(name, str):
            raise InvalidRequest(
                f"{owner}: attribute {name!r}: expected a string as its name; rename it in the "
                f"object"
            )
        columns[name] = [row.get(name) for row in rows]
    return columns
