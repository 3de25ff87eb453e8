"""Group commit of small writes: writes that arrive during a commit share the next load.

There is no timer. A write that finds no commit in progress starts at once, so loads grow with the
number of concurrent writers. `graphd.api.writes` calls this module, which opens loads at metad."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from asterism_daemonkit.rpc.call_context import CallContext, waiting
from asterism_proto.errors import AsterismError, Deadline, Internal, Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from asterism_proto.v1 import storaged_pb2 as storaged_pb
from graphd.writes.load_commit import LoadCommitter

logger = logging.getLogger(__name__)

Sections = Mapping[str, NDArray[Any]]

MAX_BATCH_BYTES = 32 << 20
"""Maximum bytes of arrays in one group; a larger write forms a group alone."""
MAX_BATCH_WRITES = 4096


@dataclass(slots=True, kw_only=True, eq=False)
class SmallWrite:
    """One caller's rows of one type, and the outcome of writing them."""

    kind: int
    """A `BlockKind` that clients may write."""
    type_id: int
    rows: int
    sections: Sections
    call: CallContext
    first_edge_id: int = 0
    """Id of its first edge."""
    commit_number: int = 0
    """Position in the order of commits, once it is durable."""
    error: AsterismError | None = None
    done: threading.Event = field(default_factory=threading.Event)

    @property
    def size(self) -> int:
        """Size of its arrays in bytes."""
        return sum(array.nbytes for array in self.sections.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteChunk:
    """Consecutive small writes of one kind and type, written as one chunk."""

    kind: int
    type_id: int
    rows: int
    sections: Sections
    writes: tuple[SmallWrite, ...]


class CommitUncertain(Deadline):
    """Commit without a reply: it may have taken effect or not."""


CommitBatch = Callable[[str, Sequence[SmallWrite], CallContext], None]
"""(space, group, call): makes the group durable, or raises.

It sets the first edge id and the commit number of each member.
"""


class WriteBatcher:
    """Group the small writes of a space.

    A caller that finds no active writer becomes the writer.

    Parameters
    ----------
    commit_batch : callable
        Commits a group.
    """

    def __init__(self, commit_batch: CommitBatch) -> None:
        self._commit_batch = commit_batch
        self._lock = threading.Lock()
        self._waiting: dict[str, list[SmallWrite]] = {}
        """Waiting writes of each space that has an active writer."""

    def write(self, space: str, small_write: SmallWrite) -> None:
        """Write together with other callers; return once the write is durable.

        Raises
        ------
        AsterismError
            The error of this write. Errors of other members of its group do not affect it.
        """
        with self._lock:
            queue = self._waiting.get(space)
            if queue is not None:
                queue.append(small_write)
            else:
                self._waiting[space] = [small_write]
        if queue is None:
            self._run_batches(space, until=small_write)
        with waiting():
            self._wait(space, small_write)
        if small_write.error is not None:
            raise small_write.error

    def _wait(self, space: str, small_write: SmallWrite) -> None:
        while not small_write.done.wait(max(0.0, small_write.call.deadline - time.monotonic())):
            with self._lock:
                queue = self._waiting.get(space, [])
                if small_write in queue:
                    queue.remove(small_write)
                    small_write.error = Deadline(
                        "the timeout of the call passed before the write began; nothing was written"
                    )
                else:
                    small_write.error = Deadline(
                        "the timeout of the call passed during the write; it may have been applied"
                    )
            return

    def _run_batches(self, space: str, *, until: SmallWrite) -> None:
        """Commit group after group; once ``until`` is done, a new thread continues."""
        while True:
            with self._lock:
                group = _next_batch(self._waiting[space])
                del self._waiting[space][: len(group)]
                if not group:
                    del self._waiting[space]
                    return
            self._commit_group(space, group)
            if until.done.is_set():
                with self._lock:
                    if not self._waiting[space]:
                        del self._waiting[space]
                        return
                    next_write = self._waiting[space][0]
                threading.Thread(
                    target=self._run_batches,
                    args=(space,),
                    kwargs={"until": next_write},
                    name="writes",
                    daemon=True,
                ).start()
                return

    def _commit_group(self, space: str, group: Sequence[SmallWrite]) -> None:
        """Commit one group. If it fails, commit each member alone, to find each one's outcome."""
        try:
            self._commit_batch(
                space, group, CallContext(max(small_write.call.deadline for small_write in group))
            )
        except CommitUncertain as error:
            _finish(group, error)
        except AsterismError as error:
            if len(group) == 1:
                _finish(group, error)
            else:
                for small_write in group:
                    self._commit_group(space, [small_write])
        except Exception:  # any failure must wake the waiting callers
            logger.exception("group_commit_failed", extra={"space": space, "writes": len(group)})
            _finish(
                group,
                Internal(
                    "the write failed; graphd's log has the details under event group_commit_failed"
                ),
            )
        else:
            _finish(group, None)


def _next_batch(queue: Sequence[SmallWrite]) -> list[SmallWrite]:
    """Return the first waiting writes that fit one group, in order."""
    size, group = 0, list[SmallWrite]()
    for small_write in queue[:MAX_BATCH_WRITES]:
        size += small_write.size
        if group and size > MAX_BATCH_BYTES:
            break
        group.append(small_write)
    return group


def _finish(group: Sequence[SmallWrite], error: AsterismError | None) -> None:
    for small_write in group:
        small_write.error = error
        small_write.done.set()


class BatchCommitter:
    """Commit groups, each as its own load.

    Parameters
    ----------
    metad : Transport
        Opens loads and commits them.
    write_chunk : callable
        ``(space, load id, chunk number, first edge id, chunk, call)``: makes a chunk's blocks
        durable in all partitions that they touch; returns the hosts written to.
    resolve_revivals, seal : callable
        See `LoadCommitter`.
    """

    def __init__(
        self,
        *,
        metad: Transport,
        write_chunk: Callable[[str, int, int, int, WriteChunk, CallContext], set[str]],
        resolve_revivals: Callable[[str, int, CallContext], tuple[int, bool]],
        seal: Callable[[str, int, Collection[str], int, CallContext], list[metad_pb.HostSeal]],
    ) -> None:
        self._metad, self._write_chunk = metad, write_chunk
        self._committer = LoadCommitter(metad, resolve_revivals=resolve_revivals, seal=seal)

    def commit_batch(self, space: str, group: Sequence[SmallWrite], call: CallContext) -> None:
        """Make a group durable; set each member's first edge id and commit number."""
        write_chunks = list(split_into_chunks(group))
        chunks = [
            metad_pb.Chunk(
                index=i,
                element=_element(write_chunk.kind),
                type_id=write_chunk.type_id,
                rows=write_chunk.rows,
                digest="single",
            )
            for i, write_chunk in enumerate(write_chunks)
        ]
        load = self._call_catalog(
            "begin_load",
            metad_pb.BeginLoadRequest(
                space=space, source=f"{len(group)} single writes", chunks=chunks
            ),
            call,
        )
        hosts: set[str] = set()
        try:
            for i, write_chunk in enumerate(write_chunks):
                hosts |= self._write_chunk(
                    space, load.load_id, i, load.chunks[i].first_edge_id, write_chunk, call
                )
        except BaseException:
            self._abandon(load.load_id)
            raise
        commit_number = self._commit(space, load.load_id, write_chunks, hosts, call)
        for i, write_chunk in enumerate(write_chunks):
            first_edge_id = load.chunks[i].first_edge_id
            for small_write in write_chunk.writes:
                small_write.first_edge_id, small_write.commit_number = first_edge_id, commit_number
                first_edge_id += small_write.rows

    def _commit(
        self,
        space: str,
        load_id: int,
        write_chunks: Sequence[WriteChunk],
        hosts: Collection[str],
        call: CallContext,
    ) -> int:
        request = metad_pb.CommitLoadRequest(
            load_id=load_id, space=space, written=range(len(write_chunks))
        )
        # Without deleted nodes there is nothing to resolve, and metad knows if there are any.
        deletes = any(write_chunk.kind == storaged_pb.NODE_DELETES for write_chunk in write_chunks)
        send_commit = partial(self._commit_with_retry, call=call)
        try:
            return self._committer.commit(
                request, call, revivals_resolved=not deletes, hosts=hosts, send_commit=send_commit
            ).commit
        except AsterismError as error:
            raise CommitUncertain(
                f"the write may have been applied, but the commit of load {load_id} failed: "
                f"{error.message}"
            ) from error

    def _commit_with_retry(
        self, request: metad_pb.CommitLoadRequest, call: CallContext
    ) -> metad_pb.Load:
        """Repeat the commit until there is a reply; a repeated commit returns the same reply."""
        while True:
            try:
                return self._call_catalog("commit_load", request, call)
            except Unavailable:
                time.sleep(min(_PAUSE_S, call.remaining()))

    def _call_catalog(self, name: str, request: Any, call: CallContext) -> metad_pb.Load:
        return cast(metad_pb.Load, self._metad.call(CATALOG[name], request, call.remaining()))

    def _abandon(self, load_id: int) -> None:
        """Abandon a load. If that fails, the load is never committed and its blocks never read."""
        try:
            self._metad.call(
                CATALOG["abandon_load"], metad_pb.LoadRequest(load_id=load_id), _ABANDON_S
            )
        except AsterismError as error:
            logger.warning("load_not_abandoned", extra={"load": load_id, "cause": error.message})


_PAUSE_S = 0.1
_ABANDON_S = 2.0


def split_into_chunks(group: Sequence[SmallWrite]) -> Iterator[WriteChunk]:
    """Yield the group's writes in order, with adjacent ones joined into one chunk.

    Writes are joined if they have the same kind, type and set of sections.
    """

    def group_key(small_write: SmallWrite) -> tuple[int, int, tuple[str, ...]]:
        return small_write.kind, small_write.type_id, tuple(sorted(small_write.sections))

    for (kind, type_id, _), chunk_writes in groupby(group, group_key):
        writes = tuple(chunk_writes)
        sections = concat_sections([small_write.sections for small_write in writes])
        yield WriteChunk(
            kind=kind,
            type_id=type_id,
            rows=sum(small_write.rows for small_write in writes),
            sections=sections,
            writes=writes,
        )


def concat_sections(pieces: Sequence[Sections]) -> dict[str, NDArray[Any]]:
    """Concatenate sections; each indptr continues at the end of the previous one."""
    if len(pieces) == 1:
        return dict(pieces[0])
    out: dict[str, NDArray[Any]] = {}
    for name in pieces[0]:
        arrays = [piece[name] for piece in pieces]
        if name.endswith(".indptr"):
            ends = np.cumsum([0, *(array[-1] for array in arrays)])
            arrays = [
                arrays[0],
                *(array[1:] + end for array, end in zip(arrays[1:], ends[1:], strict=False)),
            ]
        out[name] = np.concatenate(arrays)
    return out


def _element(kind: int) -> common_pb.Element:
    return (
        common_pb.NODE if kind in (storaged_pb.NODES, storaged_pb.NODE_DELETES) else common_pb.EDGE
    )
