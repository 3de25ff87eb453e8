"""What objects call their nodes, as ids: whole numbers stay what they are, anything else is
numbered.
"""

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
    """The labels of one type's nodes.

    Parameters
    ----------
    owner : str
        Whose, for messages.
    labels : sequence
        Different ones. Where all are whole numbers they are the ids; otherwise nodes get the
        numbers 0, 1, 2, ... in this order.
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
                    f"{owner}: node {wrong!r}: ids are 0 or more, and below 2^63; relabel "
                    "the nodes, as texts or from 0 on"
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
        """int64[count]: the ids of nodes."""
        return np.fromiter(
            labels if self.is_integer else map(self._index.__getitem__, labels), np.int64, count
        )


def attribute_lists(rows: Sequence[dict[Any, Any]], owner: str) -> dict[str, list[Any]]:
    """Attributes that rows of dicts have, as lists with None where a row has none."""
    columns: dict[str, list[Any]] = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if not isinstance(name, str):
            raise InvalidRequest(
                f"{owner}: attribute {name!r}: expected a text for a name; rename it in the object"
            )
        columns[name] = [row.get(name) for row in rows]
    return columns
