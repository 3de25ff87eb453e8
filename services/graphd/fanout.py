"""Who is asked: one call per host, all begun before the first is waited for, each within what is left of the time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from asterism_proto.arrays import Frame
from asterism_proto.errors import AsterismError, Internal, Stale, Unavailable
from asterism_proto.methods import STORE, Method
from daemonkit.calls import Call, Content, Pending, Transport
from graphd.route import Space


class Hosts:
    """The storageds by uuid: transports to their addresses, opened when first needed.

    Parameters
    ----------
    connect : callable
        Gives a transport to an address.
    """

    def __init__(self, connect: Callable[[str], Transport]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._addresses: dict[str, str] = {}
        self._transports: dict[str, Transport] = {}

    def know(self, addresses: Mapping[str, str]) -> None:
        """Take over where each host is; transports to addresses that nobody has any more are closed."""
        with self._lock:
            self._addresses = dict(addresses)
            gone = [address for address in self._transports if address not in addresses.values()]
            closed = [self._transports.pop(address) for address in gone]
        for transport in closed:
            transport.close()

    def address(self, uuid: str) -> str:
        """Where a host is; Unavailable when metad has not said."""
        address = self._addresses.get(uuid)
        if address is None:
            raise Unavailable(f"storaged {uuid} holds parts of the space, and metad does not know where it is; start it, or try again in a moment")
        return address

    def transport(self, uuid: str) -> Transport:
        """What carries calls to a host."""
        address = self.address(uuid)
        with self._lock:
            found = self._transports.get(address)
            if found is None:
                found = self._transports[address] = self._connect(address)
        return found

    def close(self) -> None:
        """Close all transports."""
        with self._lock:
            transports, self._transports = list(self._transports.values()), {}
        for transport in transports:
            transport.close()


class _Made:
    """A call that was made at once; its outcome is told when its turn comes."""

    def __init__(self, make: Callable[[], Content]) -> None:
        self._reply: Content | None = None
        self._error: AsterismError | None = None
        try:
            self._reply = make()
        except AsterismError as error:
            self._error = error

    def result(self) -> Content:
        if self._reply is None:
            raise self._error or Internal("a call ended without an outcome")
        return self._reply

    def abandon(self) -> None:
        """It is over."""


class Fanout:
    """Asks the hosts of a space.

    Parameters
    ----------
    hosts : Hosts
    on_round : callable
        Told what hosts are asked, each time.

    Notes
    -----
    One answer that fails fails the request: a sample without a part's share is a wrong answer.
    """

    def __init__(self, hosts: Hosts, on_round: Callable[[str], None] = lambda method: None) -> None:
        self._hosts = hosts
        self._on_round = on_round

    def ask(self, name: str, space: Space, requests: Iterable[tuple[int, Frame]], call: Call) -> list[Frame]:
        """The replies to (host, request) pairs, in their order.

        Raises
        ------
        AsterismError
            The first one in the order of the requests, naming the host; any Stale goes before it.
        """
        method = STORE[name]
        self._on_round(method.name)
        asked = [(space.hosts[host], request) for host, request in requests]
        begun: list[tuple[str, Pending]] = []
        replies: list[Frame] = []
        failed: AsterismError | None = None
        try:
            for uuid, request in asked[:-1]:
                begun.append((uuid, self._start(method, uuid, request, call)))
            # This thread would only wait for the others: it makes the last call itself.
            begun += [(uuid, _Made(partial(self._make, method, uuid, request, call))) for uuid, request in asked[-1:]]
            while begun:
                uuid, pending = begun.pop(0)
                try:
                    reply = pending.result()
                except Stale:
                    raise
                except AsterismError as error:
                    failed = failed or self._named(error, uuid)
                    continue
                if not isinstance(reply, Frame):
                    raise Internal(f"{method.name}: storaged {uuid} answered without a frame")
                replies.append(reply)
        finally:
            for _, pending in begun:
                pending.abandon()
        if failed is not None:
            raise failed
        return replies

    def address(self, uuid: str) -> str:
        """Where a host is, in words; "" where metad has not said."""
        try:
            return self._hosts.address(uuid)
        except Unavailable:
            return ""

    def _start(self, method: Method, uuid: str, request: Frame, call: Call) -> Pending:
        try:
            return self._hosts.transport(uuid).start(method, request, call.remaining())
        except AsterismError as error:
            raise self._named(error, uuid) from error

    def _make(self, method: Method, uuid: str, request: Frame, call: Call) -> Content:
        return self._hosts.transport(uuid).call(method, request, call.remaining())

    def _named(self, error: AsterismError, uuid: str) -> AsterismError:
        """The same error, saying whose it is."""
        if uuid in error.message:
            return error
        address = self.address(uuid)
        return type(error)(f"storaged {uuid}{f' at {address}' if address else ''}: {error.message}")
