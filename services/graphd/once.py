"""Writes by themselves: those that come while others are being committed share the next load.

No timer: a write that finds nobody writing goes at once, and the more writers there are, the larger the loads become.
Called by `graphd.api`; asks metad for loads.
"""

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

from asterism_proto.errors import AsterismError, Deadline, Internal, Unavailable
from asterism_proto.methods import CATALOG
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as meta
from asterism_proto.v1 import storaged_pb2 as store
from daemonkit.calls import Call, Transport
from graphd.commits import Committing

logger = logging.getLogger(__name__)

Sections = Mapping[str, NDArray[Any]]

GROUP_BYTES = 32 << 20
"""Of the arrays of one group; a larger write goes by itself."""
GROUP_WRITES = 4096


@dataclass(slots=True, kw_only=True, eq=False)
class Single:
    """One caller's rows of one type, and what became of them."""

    kind: int
    """A `BlockKind` that clients write."""
    type_id: int
    rows: int
    sections: Sections
    call: Call
    base: int = 0
    """The id of its first edge."""
    commit: int = 0
    """Its place in the order of writes, once it is durable."""
    error: AsterismError | None = None
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def size(self) -> int:
        """Bytes of its arrays."""
        return sum(array.nbytes for array in self.sections.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Singles of one kind and type that follow each other, as one chunk."""

    kind: int
    type_id: int
    rows: int
    sections: Sections
    members: tuple[Single, ...]


class Uncertain(Deadline):
    """Nobody answered the commit: it may be written or not."""


Carry = Callable[[str, Sequence[Single], Call], None]
"""(space, group, call): makes the group durable and gives every member its base and commit, or raises."""


class Groups:
    """Puts single writes of a space together: whoever finds nobody at work carries out what has gathered.

    Parameters
    ----------
    carry : callable
        Carries a group out.
    """

    def __init__(self, carry: Carry) -> None:
        self._carry = carry
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Single]] = {}
        """Of each space that somebody is at work for."""

    def write(self, space: str, single: Single) -> None:
        """Have a write carried out with others; back once it is durable.

        Raises
        ------
        AsterismError
            Of this write; the other members of its group are no concern of its.
        """
        with self._lock:
            waiting = self._waiting.get(space)
            if waiting is not None:
                waiting.append(single)
            else:
                self._waiting[space] = [single]
        if waiting is None:
            self._work(space, until=single)
        self._wait(space, single)
        if single.error is not None:
            raise single.error

    def _wait(self, space: str, single: Single) -> None:
        while not single.over.wait(max(0.0, single.call.deadline - time.monotonic())):
            with self._lock:
                waiting = self._waiting.get(space, [])
                if single in waiting:
                    waiting.remove(single)
                    single.error = Deadline("the call's time is up before its turn came; nothing was written")
                else:
                    single.error = Deadline("the call's time is up while it was being written; it may have been written all the same")
            return

    def _work(self, space: str, *, until: Single) -> None:
        """Carry out group after group; once ``until`` is over, another thread goes on with the rest."""
        while True:
            with self._lock:
                group = _first(self._waiting[space])
                del self._waiting[space][: len(group)]
                if not group:
                    del self._waiting[space]
                    return
            self._carry_out(space, group)
            if until.over.is_set():
                with self._lock:
                    if not self._waiting[space]:
                        del self._waiting[space]
                        return
                    heir = self._waiting[space][0]
                threading.Thread(target=self._work, args=(space,), kwargs={"until": heir}, name="writes", daemon=True).start()
                return

    def _carry_out(self, space: str, group: Sequence[Single]) -> None:
        """One group; where it fails, its members one by one, so that each gets what it deserves."""
        try:
            self._carry(space, group, Call(max(single.call.deadline for single in group)))
        except Uncertain as error:
            _end(group, error)
        except AsterismError as error:
            if len(group) == 1:
                _end(group, error)
            else:
                for single in group:
                    self._carry_out(space, [single])
        except Exception as error:  # whatever it was, nobody may wait for ever
            logger.exception("group_failed", extra={"space": space, "writes": len(group)})
            _end(group, Internal(f"the write failed: {error!r}"))
        else:
            _end(group, None)


def _first(waiting: Sequence[Single]) -> list[Single]:
    """As many of those that wait as one group takes, in their order."""
    size, group = 0, list[Single]()
    for single in waiting[:GROUP_WRITES]:
        size += single.size
        if group and size > GROUP_BYTES:
            break
        group.append(single)
    return group


def _end(group: Sequence[Single], error: AsterismError | None) -> None:
    for single in group:
        single.error = error
        single.over.set()


class SmallLoads:
    """Carries groups out, each as a load of its own.

    Parameters
    ----------
    metad : Transport
        Who gives loads and commits them.
    write : callable
        ``(space, load id, chunk number, base, run, call)``: makes a run's blocks durable at all parts that they touch; gives
        the hosts that it wrote to.
    settle, seal : callable
        As of `Committing`.
    """

    def __init__(
        self,
        *,
        metad: Transport,
        write: Callable[[str, int, int, int, Run, Call], set[str]],
        settle: Callable[[str, int, Call], tuple[int, bool]],
        seal: Callable[[str, int, Collection[str], int, Call], list[meta.HostSeal]],
    ) -> None:
        self._metad, self._write = metad, write
        self._committing = Committing(metad, settle=settle, seal=seal)

    def carry(self, space: str, group: Sequence[Single], call: Call) -> None:
        """Make a group durable; each member learns its base and commit."""
        runs = list(runs_of(group))
        chunks = [meta.Chunk(index=i, element=_element(run.kind), type_id=run.type_id, rows=run.rows, digest="single") for i, run in enumerate(runs)]
        load = self._ask("begin_load", meta.BeginLoadRequest(space=space, source=f"{len(group)} single writes", chunks=chunks), call)
        hosts: set[str] = set()
        try:
            for i, run in enumerate(runs):
                hosts |= self._write(space, load.load_id, i, load.chunks[i].base, run, call)
        except BaseException:
            self._abandon(load.load_id)
            raise
        commit = self._commit(space, load.load_id, runs, hosts, call)
        for i, run in enumerate(runs):
            base = load.chunks[i].base
            for single in run.members:
                single.base, single.commit = base, commit
                base += single.rows

    def _commit(self, space: str, load_id: int, runs: Sequence[Run], hosts: Collection[str], call: Call) -> int:
        request = meta.CommitLoadRequest(load_id=load_id, space=space, written=range(len(runs)))
        # Where no node was ever deleted there is nothing to settle, and metad is the one who knows.
        deletes = any(run.kind == store.NODE_DELETES for run in runs)
        ask = partial(self._ask_again, call=call)
        try:
            return self._committing.commit(request, call, settled=not deletes, hosts=hosts, ask=ask).commit
        except AsterismError as error:
            raise Uncertain(f"it may have been written all the same, for the commit of load {load_id} was not answered: {error.message}") from error

    def _ask_again(self, request: meta.CommitLoadRequest, call: Call) -> meta.Load:
        """Ask for the commit until there is an answer: asked again it gives the same one."""
        while True:
            try:
                return self._ask("commit_load", request, call)
            except Unavailable:
                time.sleep(min(_PAUSE_S, call.remaining()))

    def _ask(self, name: str, request: Any, call: Call) -> meta.Load:
        return cast(meta.Load, self._metad.call(CATALOG[name], request, call.remaining()))

    def _abandon(self, load_id: int) -> None:
        """Give a load up; one that can not be given up now is never committed, and its blocks are never read."""
        try:
            self._metad.call(CATALOG["abandon_load"], meta.LoadRequest(load_id=load_id), _ABANDON_S)
        except AsterismError as error:
            logger.warning("load_not_abandoned", extra={"load": load_id, "cause": error.message})


_PAUSE_S = 0.1
_ABANDON_S = 2.0


def runs_of(group: Sequence[Single]) -> Iterator[Run]:
    """The group's writes in their order, neighbors of one kind, type and set of sections put together."""

    def alike(single: Single) -> tuple[int, int, tuple[str, ...]]:
        return single.kind, single.type_id, tuple(sorted(single.sections))

    for (kind, type_id, _), found in groupby(group, alike):
        members = tuple(found)
        sections = joined([single.sections for single in members])
        yield Run(kind=kind, type_id=type_id, rows=sum(single.rows for single in members), sections=sections, members=members)


def joined(pieces: Sequence[Sections]) -> dict[str, NDArray[Any]]:
    """Sections one behind the other; an indptr goes on where the one before it ended."""
    if len(pieces) == 1:
        return dict(pieces[0])
    out: dict[str, NDArray[Any]] = {}
    for name in pieces[0]:
        arrays = [piece[name] for piece in pieces]
        if name.endswith(".indptr"):
            ends = np.cumsum([0, *(array[-1] for array in arrays)])
            arrays = [arrays[0], *(array[1:] + end for array, end in zip(arrays[1:], ends[1:], strict=False))]
        out[name] = np.concatenate(arrays)
    return out


def _element(kind: int) -> pb.Element:
    return pb.NODE if kind in (store.NODES, store.NODE_DELETES) else pb.EDGE
