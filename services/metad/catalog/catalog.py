"""The rooms of the catalog together, read from one store."""

from __future__ import annotations

from asterism_proto.errors import Corrupt
from metad.catalog.loads import Loads
from metad.catalog.model import Space, Step
from metad.catalog.pins import PinRules, Pins
from metad.catalog.spaces import Spaces
from metad.catalog.versions import Versions
from metad.store import keys
from metad.store.port import MetaStore

_FORMAT = b"1"


class Catalog:
    """Spaces, loads, versions and pins."""

    def __init__(self, store: MetaStore, *, pin_rules: PinRules | None = None, now_ms: int = 0) -> None:
        wrote = store.get(keys.FORMAT)
        if wrote is None:
            store.write({keys.FORMAT: _FORMAT})
        elif wrote != _FORMAT:
            raise Corrupt(
                f"the catalog is of format {wrote.decode(errors='replace')}, this metad reads {_FORMAT.decode()}; start the release that wrote it"
            )
        self.spaces = Spaces(store)
        self.loads = Loads(store, self.spaces)
        self.versions = Versions(store, self.spaces)
        self.pins = Pins(store, pin_rules or PinRules(), now_ms=now_ms)

    def drop(self, space: Space) -> Step:
        """The end of a space with everything in it."""
        steps = (self.pins.drop(space.space_id), self.versions.drop(space.space_id), self.loads.drop(space.space_id), self.spaces.drop(space))
        changes: dict[bytes, bytes | None] = {}
        for step in steps:
            changes |= step.changes

        def apply() -> None:
            for step in steps:
                step.apply()

        return Step(changes, apply)
