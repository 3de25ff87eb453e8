"""Existence of edges in a version, by edge id.

Stored features do not say whether an edge exists: an edge that was written without features has
none, and those of a deleted edge stay stored. So the edges themselves are searched, by filters.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from asterism.calls.graph_protocol import GraphProtocol
from asterism.records.samples import Ids

_LISTED_IDS = 700
"""Edge ids that one filter lists; it has at most 16,384 characters."""
_RANGE = 1 << 20
"""Largest range of edge ids that one filter covers if it would list too many."""
_MAX_ID = (1 << 63) - 1


def existing_edges(
    graph: GraphProtocol, etype: str, ids: Ids, version: int | None
) -> NDArray[np.bool_]:
    """Return which edges exist in a version.

    Parameters
    ----------
    graph : GraphProtocol
    etype : str
        Edge type.
    ids : ndarray of int64, shape (m,)
        Edge ids. -1 does not exist.
    version : int, optional
        Version to read. None: the version of the graph, or the current one.

    Returns
    -------
    ndarray of bool, shape (m,)

    Notes
    -----
    Each filter is evaluated over all edges of the type. There is one for each 700 ids, or for
    each range of 2^20 ids, whichever covers more of them.
    """
    wanted = np.unique(ids[ids >= 0])
    found = [np.zeros(0, np.int64)]
    for where in _filters(wanted):
        _, count = graph._edges_at(etype, np.zeros(0, np.int64), "", where, version)
        if count:
            edges, _ = graph._edges_at(etype, np.arange(count), "", where, version)
            found.append(edges.edge_ids)
    return np.isin(ids, np.concatenate(found))


def _filters(wanted: Ids) -> Iterator[str]:
    """Yield filters that together match all of some ascending ids."""
    start = 0
    while start < len(wanted):
        last = min(int(wanted[start]) + _RANGE - 1, _MAX_ID)
        stop = int(np.searchsorted(wanted, last, side="right"))
        if stop - start > _LISTED_IDS:
            yield f"id between {wanted[start]} and {wanted[stop - 1]}"
        else:
            stop = min(start + _LISTED_IDS, len(wanted))
            yield f"id in ({', '.join(map(str, wanted[start:stop]))})"
        start = stop
