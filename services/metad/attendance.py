"""Beats: who is there, and what they say of their tasks. Called by `metad.api` at each beat."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from metad.board import Board
from metad.catalog.catalog import Catalog
from metad.catalog.spaces import hosts_of
from metad.clock import Clock
from metad.cluster import Cluster, Host, Role, Word
from metad.followers import Follower, Followers, Standing
from metad.ids import HostId, LoadId
from metad.jobs import model
from metad.jobs.driver import Driver
from metad.store import codec, keys
from metad.store.port import MetaStore

logger = logging.getLogger(__name__)


class Attendance:
    """Keeps the cluster up to date, on disk where that must last, and tells the machine of storageds."""

    def __init__(
        self, *, store: MetaStore, board: Board, catalog: Catalog, cluster: Cluster, driver: Driver, followers: Followers, clock: Clock
    ) -> None:
        self._store = store
        self._followers = followers
        self._board = board
        self._catalog = catalog
        self._dropped: dict[LoadId, set[HostId]] = {}
        """Abandoned load -> the storageds without a block of it. They say it again at every beat."""
        self._cluster = cluster
        self._driver = driver
        self._clock = clock

    def beat(self, word: Word, reports: Sequence[model.Report], follower: Follower, removed: Sequence[int] = ()) -> int:
        """Take a daemon's word; the revision that it should know. Stale if the sender is fenced.

        What a daemon says that does not follow this catalog (yet) is about another one: only that it is there counts.
        """
        with self._board.lock:
            now_ms = self._clock()
            self._cluster.check(word.uuid, word.role, word.incarnation, word.start)
            follows = self._followers.heard(follower) is Standing.FOLLOWS
            if not follows:
                word, reports, removed = replace(word, held=frozenset(), dropped_loads=frozenset()), (), ()
            self._become(self._cluster.after(word, now_ms), now_ms)
            if word.role is Role.STORAGED:
                # What the machine knows counts: where its own write failed, it is to hear of the host at the next beat.
                fact = self._driver.state.hosts.get(word.uuid)
                if fact is None or not fact.online or fact.incarnation != word.incarnation:
                    self._driver.feed(model.HostSeen(now_ms=now_ms, host=word.uuid, incarnation=word.incarnation))
                if follows:
                    self._driver.feed(model.Reported(now_ms=now_ms, host=word.uuid, incarnation=word.incarnation, reports=tuple(reports)))
                self._settle(word)
                self._acknowledge(word.uuid, removed)
            return self._board.revision

    def _acknowledge(self, host: HostId, removed: Sequence[int]) -> None:
        for removal in self._catalog.removals.acknowledge(host, removed):
            fields = {"host": host, "kind": removal.kind.name.lower(), "space_id": removal.space_id, "job": removal.job_id}
            logger.info("removal_done", extra=fields)

    def _settle(self, word: Word) -> None:
        """Be done with abandoned loads of which no storaged of their space holds a block any more."""
        for space in self._catalog.spaces.all() if word.dropped_loads else ():
            for load_id in word.dropped_loads.intersection(self._catalog.loads.abandoned_of(space.space_id)):
                said = self._dropped.setdefault(load_id, set())
                said.add(word.uuid)
                if hosts_of(space) <= said:
                    self._catalog.loads.settle(load_id)
                    del self._dropped[load_id]
                    logger.info("load_settled", extra={"space": space.name, "load": load_id})

    def lapse(self) -> None:
        """Take those for gone whose lease is over."""
        with self._board.lock:
            now_ms = self._clock()
            for host in self._cluster.lapsed(now_ms):
                self._become(host, now_ms)
            for uuid, fact in list(self._driver.state.hosts.items()):
                known = self._cluster.get(uuid)
                if fact.online and known is not None and not known.online:
                    self._driver.feed(model.HostLost(now_ms=now_ms, host=uuid))

    def forget(self, silent_ms: int) -> None:
        """Forget graphds that have been silent for so long: they hold nothing, and each start may be a new one."""
        with self._board.lock:
            for uuid in self._cluster.long_gone(Role.GRAPHD, self._clock() - silent_ms):
                self._store.write({keys.host(uuid): None})
                self._cluster.remove(uuid)

    def _become(self, host: Host, now_ms: int) -> None:
        known = self._cluster.get(host.uuid)
        if known is not None and known.matters() == host.matters():
            self._cluster.put(host, now_ms)
            return
        self._store.write({keys.host(host.uuid): codec.host_to(host)})
        self._cluster.put(host, now_ms)
        logger.info(
            "host_came" if host.online else "host_lost",
            extra={"host": host.uuid, "role": host.role.name.lower(), "address": host.address, "incarnation": host.incarnation},
        )
        if host.role is Role.STORAGED:
            self._board.changed()
