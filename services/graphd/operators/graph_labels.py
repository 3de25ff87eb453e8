"""Graph labels: distinct labels of a version, sampling of labels, and their nodes."""

from __future__ import annotations

import threading
from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.operators import graph_labels
from asterism_graphkit.random import rng
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.operators.request_context import REPLY_BYTES, Ids, RequestContext, Sections
from graphd.routing import split_merge

ByteStrings = tuple[Ids, NDArray[np.uint8]]
"""Byte strings as (indptr int64[n + 1], values uint8)."""

_MAX_KEPT = 4
"""Maximum number of versions with cached labels."""
MAX_LABEL_BYTES = 512 << 20
"""Maximum bytes of a version's labels, as read from its partitions."""


class GraphLabelCache:
    """Cache of the distinct labels of versions. Each version is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, ByteStrings] = OrderedDict()
        """Labels by the digest of the version's manifest."""

    def get(self, context: RequestContext) -> ByteStrings:
        """Return the distinct labels of a version, ordered by (hash, bytes).

        Raises
        ------
        InvalidRequest
            If no node type declares a label, or if the labels exceed the limit.
        """
        digest = context.version.digest
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest]
        distinct_labels = _distinct(_read_labels(context))
        with self._lock:
            self._kept[digest] = distinct_labels
            while len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
        return distinct_labels


def sample_labels(
    context: RequestContext, cache: GraphLabelCache, seed: int, count: int
) -> Sections:
    """Sample labels uniformly: sections of SampleGraphLabelsReply.

    Notes
    -----
    Draw i is label ``below(word i, number of labels)`` in canonical order, which is by (hash,
    bytes). The order does not depend on the partitions, types, hosts or number of a label's nodes.
    Part of the sampling contract: changing it changes results for a given seed."""
    indptr, values = cache.get(context)
    label_count = len(indptr) - 1
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more labels")
    if 8 * (count + 1) > REPLY_BYTES:  # check before sampling: the offsets alone need this much
        raise InvalidRequest(
            f"count={count}: expected at most {REPLY_BYTES // 8 - 1} labels in one reply; sample "
            "fewer at a time"
        )
    if not label_count:
        raise NotFound(
            f"version {context.version.version} of space {context.space.name!r} has no node "
            "with a graph label"
        )
    chosen = graph_labels.choose_uniform(rng.key_of(seed, rng.LABEL), count, label_count)
    if int(np.diff(indptr)[chosen].sum()) + 8 * count > REPLY_BYTES:
        raise InvalidRequest(f"{count} labels do not fit into one reply; sample fewer at a time")
    out_indptr, out_values = split_merge.gather_ragged(indptr, values, chosen)
    return {"labels.indptr": out_indptr, "labels.values": out_values}


def label_nodes(context: RequestContext, indptr: Ids, values: NDArray[np.uint8]) -> Sections:
    """Return the nodes of each label, ordered by (type, id): sections of GraphNodesReply."""
    requests = [
        (
            host,
            Frame(
                storaged_pb.ReadNodesByLabelRequest(
                    version_ref=context.version_ref(), parts=context.space.parts_of(host)
                ),
                {"indptr": indptr, "values": values},
            ),
        )
        for host in range(len(context.space.hosts))
        if context.space.parts_of(host)
    ]
    replies = context.dispatch("read_nodes_by_label", requests)
    lengths = [np.diff(reply.array("indptr", "int64")) for reply in replies]
    label_indices = np.concatenate(
        [np.repeat(np.arange(len(length), dtype=np.int64), length) for length in lengths]
    )
    ids, types = (
        np.concatenate([reply.array(name, dtype) for reply in replies])
        for name, dtype in (("ids", "int64"), ("types", "int32"))
    )
    if ids.nbytes + types.nbytes > REPLY_BYTES:
        raise InvalidRequest(
            f"the nodes of {len(indptr) - 1} labels have {ids.nbytes + types.nbytes:,} bytes: "
            f"expected at most {REPLY_BYTES:,} in one reply; request fewer labels"
        )
    order = np.lexsort((ids, types, label_indices))
    return {
        "indptr": split_merge.indptr_of(np.sum(lengths, axis=0).astype(np.int64)),
        "ids": ids[order],
        "types": types[order],
    }


def _read_labels(context: RequestContext) -> ByteStrings:
    """Read the labels of every host's partitions, page by page."""
    lengths, values, size = [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)], 0
    cursors = {host: 0 for host in range(len(context.space.hosts)) if context.space.parts_of(host)}
    while cursors:
        requests = [
            (
                host,
                Frame(
                    storaged_pb.ReadGraphLabelsRequest(
                        version_ref=context.version_ref(),
                        parts=context.space.parts_of(host),
                        cursor=cursor,
                    )
                ),
            )
            for host, cursor in cursors.items()
        ]
        for (host, _), reply in zip(
            requests, context.dispatch("read_graph_labels", requests), strict=True
        ):
            lengths.append(np.diff(reply.array("labels.indptr", "int64")))
            values.append(reply.array("labels.values", "uint8"))
            size += lengths[-1].nbytes + values[-1].nbytes
            cursors[host] = reply.with_head(storaged_pb.ReadGraphLabelsReply).head.next_cursor
        cursors = {host: cursor for host, cursor in cursors.items() if cursor >= 0}
        if size > MAX_LABEL_BYTES:
            raise InvalidRequest(
                f"the graph labels of space {context.space.name!r} exceed {MAX_LABEL_BYTES:,} "
                "bytes; use shorter labels"
            )
    return split_merge.indptr_of(np.concatenate(lengths)), np.concatenate(values)


def _distinct(label_texts: ByteStrings) -> ByteStrings:
    """Return each label once, ordered by (hash, bytes)."""
    indptr, values = label_texts
    count = len(indptr) - 1
    rows, starts, _ = graph_labels.group_strings(
        graph_labels.hash_strings(indptr, values, 0, count),
        np.arange(count, dtype=np.int64),
        indptr,
        values,
    )
    return split_merge.gather_ragged(indptr, values, rows[starts])
