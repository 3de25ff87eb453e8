"""Graph labels: the distinct ones of a version, draws among them, and the nodes of each."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto.arrays import Frame
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import storaged_pb2 as store
from graphd import split
from graphd.sample import REPLY_BYTES, Ids, Sampling, Sections
from graphkit import labels, rng

Texts = tuple[Ids, NDArray[np.uint8]]
"""(indptr int64[n + 1], values uint8): byte strings."""

_KEPT = 4
"""Versions whose labels are kept."""
MOST_BYTES = 512 << 20
"""Of a version's labels, as its parts tell them."""


class Labels:
    """The distinct labels of versions, asked for once each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, Texts] = OrderedDict()
        """By the digest of the version's manifest."""

    def of(self, sampling: Sampling) -> Texts:
        """All labels of a version, each once, by (hash, bytes).

        Raises
        ------
        InvalidRequest
            Where no node type declares a label, or they are too many to be kept here.
        """
        digest = sampling.version.digest
        with self._lock:
            if digest in self._kept:
                self._kept.move_to_end(digest)
                return self._kept[digest]
        made = _distinct(_told(sampling))
        with self._lock:
            self._kept[digest] = made
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return made


def sample(sampling: Sampling, known: Labels, seed: int, count: int) -> Sections:
    """Labels, each alike: sections as SampleGraphLabelsReply has them.

    Notes
    -----
    Draw i is label ``below(word i, how many)`` of the version's labels in canonical order: by (hash, bytes), whichever parts, types
    and hosts have nodes of it, and however many.
    """
    indptr, values = known.of(sampling)
    among = len(indptr) - 1
    if count < 0:
        raise InvalidRequest(f"count {count}: expected 0 or more labels")
    if 8 * (count + 1) > REPLY_BYTES:  # before anything is drawn: the offsets alone take so much
        raise InvalidRequest(f"count={count}: expected at most {REPLY_BYTES // 8 - 1} labels in one reply; ask for fewer at a time")
    if not among:
        raise NotFound(f"version {sampling.version.version} of space {sampling.space.name!r} has no node with a graph label")
    chosen = labels.choose(rng.key_of(seed, rng.LABEL), count, among)
    if int(np.diff(indptr)[chosen].sum()) + 8 * count > REPLY_BYTES:
        raise InvalidRequest(f"{count} labels do not fit into one reply; ask for fewer at a time")
    out_indptr, out_values = split.gathered(indptr, values, chosen)
    return {"labels.indptr": out_indptr, "labels.values": out_values}


def nodes(sampling: Sampling, indptr: Ids, values: NDArray[np.uint8]) -> Sections:
    """The nodes of each label: sections as GraphNodesReply has them; of each by (type, id)."""
    asked = [
        (host, Frame(store.ReadLabelledRequest(at=sampling.at(), parts=sampling.space.parts_of(host)), {"indptr": indptr, "values": values}))
        for host in range(len(sampling.space.hosts))
        if sampling.space.parts_of(host)
    ]
    replies = sampling.ask("read_labelled", asked)
    lengths = [np.diff(reply.array("indptr", "int64")) for reply in replies]
    label = np.concatenate([np.repeat(np.arange(len(length), dtype=np.int64), length) for length in lengths])
    ids, types = (np.concatenate([reply.array(name, dtype) for reply in replies]) for name, dtype in (("ids", "int64"), ("types", "int32")))
    if ids.nbytes + types.nbytes > REPLY_BYTES:
        raise InvalidRequest(
            f"the nodes of {len(indptr) - 1} labels have {ids.nbytes + types.nbytes} bytes, one reply at most {REPLY_BYTES}; ask for fewer"
        )
    order = np.lexsort((ids, types, label))
    return {"indptr": split.indptr_of(np.sum(lengths, axis=0).astype(np.int64)), "ids": ids[order], "types": types[order]}


def _told(sampling: Sampling) -> Texts:
    """What every host tells of its parts, page by page."""
    lengths, values, size = [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)], 0
    going = {host: 0 for host in range(len(sampling.space.hosts)) if sampling.space.parts_of(host)}
    while going:
        asked = [
            (host, Frame(store.ReadLabelsRequest(at=sampling.at(), parts=sampling.space.parts_of(host), cursor=cursor)))
            for host, cursor in going.items()
        ]
        for (host, _), reply in zip(asked, sampling.ask("read_labels", asked), strict=True):
            head: Any = reply.head
            lengths.append(np.diff(reply.array("labels.indptr", "int64")))
            values.append(reply.array("labels.values", "uint8"))
            size += lengths[-1].nbytes + values[-1].nbytes
            going[host] = head.next_cursor
        going = {host: cursor for host, cursor in going.items() if cursor >= 0}
        if size > MOST_BYTES:
            raise InvalidRequest(f"the graph labels of space {sampling.space.name!r} take more than {MOST_BYTES} bytes; give graphs shorter labels")
    return split.indptr_of(np.concatenate(lengths)), np.concatenate(values)


def _distinct(told: Texts) -> Texts:
    """Each label once, by (hash, bytes)."""
    indptr, values = told
    count = len(indptr) - 1
    rows, starts, _ = labels.grouped(labels.hashes(indptr, values, 0, count), np.arange(count, dtype=np.int64), indptr, values)
    return split.gathered(indptr, values, rows[starts])
