"""Graph labels: the distinct ones of a version, draws among them, and the nodes of each."""

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
from graphd.operators.sampling import REPLY_BYTES, Ids, RequestContext, Sections
from graphd.routing import split_merge

ByteStrings = tuple[Ids, NDArray[np.uint8]]
"""(indptr int64[n + 1], values uint8): byte strings."""

_MAX_KEPT = 4
"""Versions whose labels are kept."""
MAX_LABEL_BYTES = 512 << 20
"""Of a version's labels, as its parts tell them."""


class GraphLabelCache:
    """The distinct labels of versions, asked for once each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, ByteStrings] = OrderedDict()
        """By the digest of the version's manifest."""

    def get(self, context: RequestContext) -> ByteStrings:
        """All labels of a version, each once, by (hash, bytes).

        Raises
        ------
        InvalidRequest
            Where no node type declares a label, or they are too many to be kept here.
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
    """Labels, each alike: sections as SampleGraphLabelsReply has them.

    Notes
    -----
    Draw i is label ``below(word i, how many)`` of the version's labels in canonical order: by
    (hash, bytes), whichever parts, types and hosts have nodes of it, and however many."""
    indptr, values = cache.get(context)
    label_count = len(indptr) - 1
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more labels")
    if 8 * (count + 1) > REPLY_BYTES:  # before anything is drawn: the offsets alone take so much
        raise InvalidRequest(
            f"count={count}: expected at most {REPLY_BYTES // 8 - 1} labels in one reply; "
            "ask for fewer at a time"
        )
    if not label_count:
        raise NotFound(
            f"version {context.version.version} of space {context.space.name!r} has no node "
            "with a graph label"
        )
    chosen = graph_labels.choose_uniform(rng.key_of(seed, rng.LABEL), count, label_count)
    if int(np.diff(indptr)[chosen].sum()) + 8 * count > REPLY_BYTES:
        raise InvalidRequest(f"{count} labels do not fit into one reply; ask for fewer at a time")
    out_indptr, out_values = split_merge.gather_ragged(indptr, values, chosen)
    return {"labels.indptr": out_indptr, "labels.values": out_values}


def label_nodes(context: RequestContext, indptr: Ids, values: NDArray[np.uint8]) -> Sections:
    """The nodes of each label: sections as GraphNodesReply has them; of each by (type, id)."""
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
            f"the nodes of {len(indptr) - 1} labels have {ids.nbytes + types.nbytes} bytes, "
            f"one reply at most {REPLY_BYTES}; ask for fewer"
        )
    order = np.lexsort((ids, types, label_indices))
    return {
        "indptr": split_merge.indptr_of(np.sum(lengths, axis=0).astype(np.int64)),
        "ids": ids[order],
        "types": types[order],
    }


def _read_labels(context: RequestContext) -> ByteStrings:
    """What every host tells of its parts, page by page."""
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
                f"the graph labels of space {context.space.name!r} take more than "
                f"{MAX_LABEL_BYTES} bytes; give graphs shorter labels"
            )
    return split_merge.indptr_of(np.concatenate(lengths)), np.concatenate(values)


def _distinct(label_texts: ByteStrings) -> ByteStrings:
    """Each label once, by (hash, bytes)."""
    indptr, values = label_texts
    count = len(indptr) - 1
    rows, starts, _ = graph_labels.group_strings(
        graph_labels.hash_strings(indptr, values, 0, count),
        np.arange(count, dtype=np.int64),
        indptr,
        values,
    )
    return split_merge.gather_ragged(indptr, values, rows[starts])
