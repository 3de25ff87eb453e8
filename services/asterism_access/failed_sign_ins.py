"""Limit of failed sign-ins of one address, against guessing and against floods of records."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections.abc import Callable

from asterism_proto.errors import QuotaExceeded

MAX_FAILURES = 10
"""Sign-ins of an address that may fail in a row."""
REFILL_S = 6.0
"""Seconds after which an address may fail once more."""
_MAX_ADDRESSES = 10_000
_IPV6_NETWORK_BITS = 64
"""Bits of an IPv6 address that count: a host has all addresses with them."""


class FailedSignIns:
    """Numbers of failed sign-ins by address. Threads may share an object.

    An address has `MAX_FAILURES` attempts, and another one every `REFILL_S` seconds. An attempt is
    taken before the credential is looked at, so that many at once do not exceed the limit; a
    sign-in that succeeds gives it back.

    Parameters
    ----------
    max_addresses : int
        Addresses that are remembered. Beyond, those without recent failures are forgotten first.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self, max_addresses: int = _MAX_ADDRESSES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_addresses, self._clock = max_addresses, clock
        self._lock = threading.Lock()
        self._free_at: dict[str, float] = {}
        """Time at which all attempts of an address are left again."""

    def __len__(self) -> int:
        """Return the number of remembered addresses."""
        return len(self._free_at)

    def take(self, address: str) -> None:
        """Take an attempt of an address.

        Raises
        ------
        QuotaExceeded
            If none is left.
        """
        key = network_of(address)
        with self._lock:
            now = self._clock()
            free_at = max(self._free_at.pop(key, now), now) + REFILL_S
            wait_s = free_at - now - MAX_FAILURES * REFILL_S
            if wait_s > 0:
                self._free_at[key] = free_at - REFILL_S
                raise QuotaExceeded(
                    f"sign_ins={MAX_FAILURES}: as many failed from this address; try again in "
                    f"{math.ceil(wait_s)} s",
                    retry_after_s=wait_s,
                )
            self._free_at[key] = free_at
            if len(self._free_at) > self._max_addresses:
                self._forget(now)

    def give_back(self, address: str) -> None:
        """Give an attempt of an address back: the sign-in succeeded."""
        key = network_of(address)
        with self._lock:
            free_at = self._free_at.get(key)
            if free_at is not None:
                self._free_at[key] = free_at - REFILL_S

    def _forget(self, now: float) -> None:
        """Forget the addresses without recent failures, or else the oldest quarter."""
        self._free_at = {key: at for key, at in self._free_at.items() if at > now}
        if len(self._free_at) > self._max_addresses:
            for key in list(self._free_at)[: len(self._free_at) // 4 + 1]:
                del self._free_at[key]


def network_of(address: str) -> str:
    """Return what counts of an address: IPv4 as a whole, and the network of IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, _IPV6_NETWORK_BITS), strict=False))
    return str(parsed)
