"""What objects call their nodes, as ids: whole numbers stay what they are, anything else is numbered."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.records import Ids
from asterism_proto.errors import InvalidRequest

_MOST = (1 << 63) - 1


class Labels:
    """The labels of one type's nodes.

    Parameters
    ----------
    what : str
        Whose, for messages.
    labels : sequence
        Different ones. Where all are whole numbers they are the ids; otherwise nodes get the numbers 0, 1, 2, ... in this order.
    """

    def __init__(self, what: str, labels: Sequence[Hashable]) -> None:
        self.count = len(labels)
        kinds = set(map(type, labels))
        self.whole = all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds)
        if self.whole:
            wrong = next((label for label in labels if not 0 <= label <= _MOST), None)  # type: ignore[operator]  # they are whole numbers
            if wrong is not None:
                raise InvalidRequest(f"{what}: node {wrong!r}: ids are 0 or more, and below 2^63; relabel the nodes, as texts or from 0 on")
            self._at: dict[Hashable, int] = {}
            self.ids: Ids | None = np.fromiter(labels, np.int64, self.count)
            if np.array_equal(self.ids, np.arange(self.count)):
                self.ids = None
            self.names: NDArray[Any] | None = None
        else:
            self._at = {label: i for i, label in enumerate(labels)}
            self.ids, self.names = None, np.fromiter(labels, object, self.count)

    def numbers(self, labels: Iterable[Hashable], count: int) -> Ids:
        """int64[count]: the ids of nodes."""
        return np.fromiter(labels if self.whole else map(self._at.__getitem__, labels), np.int64, count)


def named_attributes(rows: Sequence[dict[Any, Any]], what: str) -> dict[str, list[Any]]:
    """Attributes that rows of dicts have, as lists with None where a row has none."""
    found: dict[str, list[Any]] = {}
    for name in dict.fromkeys(chain.from_iterable(rows)):
        if not isinstance(name, str):
            raise InvalidRequest(f"{what}: attribute {name!r}: expected a text for a name; rename it in the object")
        found[name] = [row.get(name) for row in rows]
    return found
