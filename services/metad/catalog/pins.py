"""Pins: leases on versions. A pinned version stays served, however many newer ones exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from asterism_proto.errors import Busy, InvalidRequest, NotFound
from metad.model.catalog import Manifest, PendingWrite, Pin, Space
from metad.model.ids import PinId, SpaceId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

_DEFAULT_TERM_MS = 60_000
_MIN_TERM_MS = 1_000
_MAX_OWNER_CHARS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class PinLimits:
    """Limits on pins."""

    max_term_ms: int = 86_400_000
    """Longest term of a pin, in milliseconds."""
    max_pins: int = 1000
    """Maximum number of pins of one space at a time."""


class Pins:
    """All pins.

    Renewals are kept in memory only: a restart of metad grants each pin a full term."""

    def __init__(self, store: MetaStore, limits: PinLimits, *, now_ms: int) -> None:
        self._store = store
        self._limits = limits
        self._next = record_encoding.decode_number(store.get(keys.NEXT_PIN), default=1)
        stored = (record_encoding.decode_pin(value) for _, value in store.range(keys.PINS))
        self._pins = {pin.pin_id: replace(pin, expires_ms=now_ms + pin.term_ms) for pin in stored}

    def create(
        self,
        space: Space,
        manifest: Manifest,
        *,
        term_s: float,
        owner: str,
        now_ms: int,
        principal: str = "",
    ) -> Pin:
        """Create a pin on a version.

        Parameters
        ----------
        space : Space
        manifest : Manifest
            Version to pin.
        term_s : float
            Term in seconds; 0 for the default of one minute.
        owner : str
            Label of at most 256 characters.
        now_ms : int
        principal : str
            Creator of the pin, if limits may apply to it. Default: none.

        Raises
        ------
        InvalidRequest
            If the term or the owner is out of bounds.
        Busy
            If the space has the maximum number of pins.
        """
        limit_s = self._limits.max_term_ms / 1000
        if term_s != 0 and not _MIN_TERM_MS / 1000 <= term_s <= limit_s:
            raise InvalidRequest(
                f"term_s={term_s}: expected {_MIN_TERM_MS / 1000:g} to {limit_s:g} s, or 0 for "
                f"{_DEFAULT_TERM_MS / 1000:g} s"
            )
        if len(owner) > _MAX_OWNER_CHARS:
            raise InvalidRequest(
                f"owner={owner[:40]!r}...: expected at most {_MAX_OWNER_CHARS} characters, found "
                f"{len(owner)}"
            )
        space_pins = self.of_space(space.space_id)
        if len(space_pins) >= self._limits.max_pins:
            raise Busy(
                f"space {space.name!r} has {len(space_pins)} pins, the maximum; release some, or "
                "wait until the first one ends"
            )
        term_ms = int(term_s * 1000) or min(_DEFAULT_TERM_MS, self._limits.max_term_ms)
        pin = Pin(
            pin_id=PinId(self._next),
            space_id=space.space_id,
            space=space.name,
            version=manifest.version,
            owner=owner,
            term_ms=term_ms,
            created_ms=now_ms,
            expires_ms=now_ms + term_ms,
            principal=principal,
        )
        self._store.write(
            {
                keys.pin_key(pin.pin_id): record_encoding.encode_pin(pin),
                keys.NEXT_PIN: record_encoding.encode_number(self._next + 1),
            }
        )
        self._next += 1
        self._pins[pin.pin_id] = pin
        return pin

    def renew(self, pin_id: int, *, now_ms: int) -> Pin:
        """Grant a pin a full term from now; NotFound if it has ended."""
        pin = self._pins.get(PinId(pin_id))
        if pin is None or pin.expires_ms <= now_ms:
            newest = f"the newest is {self._next - 1}" if self._next > 1 else "there are none"
            raise NotFound(
                f"pin {pin_id} does not exist ({newest}): it was released, it ended without a "
                "renewal, or its space was dropped; pin the version again"
            )
        pin = self._pins[pin.pin_id] = replace(pin, expires_ms=now_ms + pin.term_ms)
        return pin

    def release(self, pin_id: int) -> Pin | None:
        """End a pin and return it; None if it has ended already."""
        pin = self._pins.get(PinId(pin_id))
        if pin is not None:
            self._delete([pin])
        return pin

    def expire(self, now_ms: int) -> list[Pin]:
        """Delete the expired pins and return them."""
        expired = [pin for pin in self._pins.values() if pin.expires_ms <= now_ms]
        if expired:
            self._delete(expired)
        return expired

    def next_end_ms(self) -> int | None:
        """Return when the next pin ends if it is not renewed; None without pins."""
        return min((pin.expires_ms for pin in self._pins.values()), default=None)

    def all(self) -> list[Pin]:
        """Return all pins, by id."""
        return list(self._pins.values())

    def of_space(self, space_id: SpaceId) -> list[Pin]:
        """Return the pins of a space, by id."""
        return [pin for pin in self._pins.values() if pin.space_id == space_id]

    def pinned_versions(self, space_id: SpaceId) -> set[int]:
        """Return the pinned versions of a space."""
        return {pin.version for pin in self.of_space(space_id)}

    def skip_ids(self, first_id: int) -> None:
        """Assign no identifier below ``first_id`` from now on; the store has it already."""
        self._next = max(self._next, first_id)

    def drop(self, space_id: SpaceId) -> PendingWrite:
        """Return the write that ends all pins of a space."""
        space_pins = self.of_space(space_id)
        return PendingWrite(
            {keys.pin_key(pin.pin_id): None for pin in space_pins}, lambda: self._forget(space_pins)
        )

    def _delete(self, pins: Sequence[Pin]) -> None:
        self._store.write({keys.pin_key(pin.pin_id): None for pin in pins})
        self._forget(pins)

    def _forget(self, pins: Sequence[Pin]) -> None:
        for pin in pins:
            self._pins.pop(pin.pin_id, None)
