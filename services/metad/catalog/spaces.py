"""Spaces: their schemas, partitions and hosts, edge id bases and commit numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from asterism_model.schema import Schema
from asterism_model.validation import NAME_PATTERN
from asterism_proto.errors import Conflict, InvalidRequest, NotFound, NotReady
from metad.model.catalog import PendingWrite, Space
from metad.model.ids import HostId, SpaceId
from metad.store import keys
from metad.store.port import MetaStore
from metad.wire import record_encoding

_MAX_EDGE_ID = (1 << 62) - 1


class Spaces:
    """All spaces, by id and by name."""

    def __init__(self, store: MetaStore) -> None:
        self._store = store
        self._by_id = {
            space.space_id: space
            for space in map(record_encoding.decode_space, _values(store, keys.SPACES))
        }
        self._by_name = {space.name: space for space in self._by_id.values()}
        self._lists_names = True
        self._next = record_encoding.decode_number(store.get(keys.NEXT_SPACE), default=1)
        self._commits = {
            keys.last_number(key): record_encoding.decode_number(value)
            for key, value in store.range(keys.COMMITS)
        }
        self._bases = {
            (int(key.split(b"/")[-2]), keys.last_number(key)): record_encoding.decode_number(value)
            for key, value in store.range(keys.BASES)
        }

    def hide_names(self) -> None:
        """List no names of other spaces in errors, because callers may not see all spaces."""
        self._lists_names = False

    def all(self) -> list[Space]:
        """Return all spaces, by id."""
        return [self._by_id[space_id] for space_id in sorted(self._by_id)]

    def get(self, space_id: int) -> Space | None:
        """Return the space with this id; None if it does not exist."""
        return self._by_id.get(SpaceId(space_id))

    def has_name(self, name: str) -> bool:
        """Return whether a space has this name."""
        return name in self._by_name

    def find_by_name(self, name: str) -> Space:
        """Return the space of this name; NotFound lists the existing ones if callers see all."""
        if not name:
            raise InvalidRequest("space='': expected the name of a space")
        space = self._by_name.get(name)
        if space is None:
            names = (
                f"there {_describe_names(sorted(self._by_name))}"
                if self._lists_names
                else "SHOW SPACES lists yours"
            )
            raise NotFound(f"space {name!r} does not exist; {names}")
        return space

    def create(
        self,
        name: str,
        schema: Schema,
        *,
        if_not_exists: bool,
        storageds: Sequence[HostId],
        now_ms: int,
    ) -> tuple[Space, bool]:
        """Create a space, or return the equal existing one, and whether it is new.

        Partitions are assigned round-robin to ``storageds``."""
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidRequest(
                f"space {name!r}: expected a letter or _, then up to 127 letters, digits, _ . or -"
            )
        existing = self._by_name.get(name)
        if existing is not None:
            if if_not_exists and existing.schema == schema:
                return existing, False
            reason = "has another schema" if if_not_exists else "exists"
            raise Conflict(
                f"space {name!r} {reason} already (id {existing.space_id}); drop it first or "
                "choose another name"
            )
        space = self._make_space(name, schema, storageds, now_ms)
        self._store.write(
            {
                keys.space_key(space.space_id): record_encoding.encode_space(space),
                keys.NEXT_SPACE: record_encoding.encode_number(self._next + 1),
            }
        )
        self._next += 1
        self._put(space)
        return space, True

    def create_from_record(
        self,
        name: str,
        schema: Schema,
        *,
        last_commit: int,
        next_edge_ids: Sequence[int],
        storageds: Sequence[HostId],
        now_ms: int,
    ) -> tuple[Space, PendingWrite]:
        """Return a new space that continues given commit numbers and edge ids, and its write."""
        if not NAME_PATTERN.fullmatch(name):
            raise InvalidRequest(
                f"space {name!r}: expected a letter or _, then up to 127 letters, digits, _ . or -"
            )
        existing = self._by_name.get(name)
        if existing is not None:
            raise Conflict(
                f"space {name!r} exists already (id {existing.space_id}); drop it first or "
                "choose another name"
            )
        space = self._make_space(name, schema, storageds, now_ms)
        bases: dict[tuple[int, int], int] = {
            (space.space_id, type_id): base for type_id, base in enumerate(next_edge_ids) if base
        }
        changes: dict[bytes, bytes | None] = {
            keys.space_key(space.space_id): record_encoding.encode_space(space),
            keys.NEXT_SPACE: record_encoding.encode_number(self._next + 1),
            keys.commit_key(space.space_id): record_encoding.encode_number(last_commit),
        }
        changes |= {
            keys.base_key(*key): record_encoding.encode_number(base) for key, base in bases.items()
        }

        def apply() -> None:
            self._next += 1
            self._put(space)
            self._commits[space.space_id] = last_commit
            self._bases |= bases

        return space, PendingWrite(changes, apply)

    def _make_space(
        self, name: str, schema: Schema, storageds: Sequence[HostId], now_ms: int
    ) -> Space:
        if not storageds:
            raise NotReady(
                f"space {name!r} needs storageds for its {schema.parts} partitions, and none is "
                "online; start one"
            )
        return Space(
            space_id=SpaceId(self._next),
            name=name,
            schema=schema,
            parts=tuple((storageds[part % len(storageds)],) for part in range(schema.parts)),
            version=0,
            created_ms=now_ms,
        )

    def skip_ids(self, first_id: int) -> None:
        """Assign no identifier below ``first_id`` from now on; the store has it already."""
        self._next = max(self._next, first_id)

    def drop(self, space: Space) -> PendingWrite:
        """Return the write that deletes a space. Its id is never reused."""
        changes: dict[bytes, bytes | None] = {
            keys.space_key(space.space_id): None,
            keys.commit_key(space.space_id): None,
        }
        changes |= {
            keys.base_key(owner, type_id): None
            for owner, type_id in self._bases
            if owner == space.space_id
        }

        def apply() -> None:
            del self._by_id[space.space_id]
            del self._by_name[space.name]
            self._commits.pop(space.space_id, None)
            self._bases = {
                key: base for key, base in self._bases.items() if key[0] != space.space_id
            }

        return PendingWrite(changes, apply)

    def set_version(self, space: Space, version: int) -> PendingWrite:
        """Return the write that sets the current version of a space."""
        space = replace(space, version=version)
        return PendingWrite(
            {keys.space_key(space.space_id): record_encoding.encode_space(space)},
            lambda: self._put(space),
        )

    def last_commit(self, space_id: SpaceId) -> int:
        """Return the newest commit number of a space; 0 if it has none."""
        return self._commits.get(space_id, 0)

    def next_edge_ids(self, space: Space) -> tuple[int, ...]:
        """Return the next edge id of every edge type."""
        return tuple(
            self._bases.get((space.space_id, type_id), 0)
            for type_id in range(len(space.schema.edge_types))
        )

    def next_commit(self, space_id: SpaceId) -> tuple[int, PendingWrite]:
        """Return the next commit number of a space, and the write that takes it."""
        number = self.last_commit(space_id) + 1
        return number, PendingWrite(
            {keys.commit_key(space_id): record_encoding.encode_number(number)},
            lambda: self._commits.update({space_id: number}),
        )

    def allocate_edge_ids(
        self, space_id: SpaceId, runs: Sequence[tuple[int, int]]
    ) -> tuple[list[int], PendingWrite]:
        """Return unused first edge ids for runs of (edge type, rows), and their write."""
        bases = dict(self._bases)
        first_ids = []
        changes: dict[bytes, bytes | None] = {}
        for type_id, rows in runs:
            base = bases.get((space_id, type_id), 0)
            if base + rows > _MAX_EDGE_ID:
                raise InvalidRequest(
                    f"edge type {type_id}: {rows} more edge ids after {base} exceed the limit of "
                    "2^62"
                )
            first_ids.append(base)
            bases[space_id, type_id] = base + rows
            changes[keys.base_key(space_id, type_id)] = record_encoding.encode_number(base + rows)

        def apply() -> None:
            self._bases = bases

        return first_ids, PendingWrite(changes, apply)

    def _put(self, space: Space) -> None:
        self._by_id[space.space_id] = space
        self._by_name[space.name] = space


def parts_of_host(space: Space, host: HostId) -> list[int]:
    """Return the partitions of a space that a storaged holds."""
    return [part for part, hosts in enumerate(space.parts) if host in hosts]


def space_hosts(space: Space) -> set[HostId]:
    """Return the storageds that hold a partition of a space."""
    return {host for hosts in space.parts for host in hosts}


def parts_by_host(space: Space) -> dict[HostId, list[int]]:
    """Return the partitions of a space by the storaged that builds them, their first host."""
    host_parts: dict[HostId, list[int]] = {}
    for part, hosts in enumerate(space.parts):
        host_parts.setdefault(hosts[0], []).append(part)
    return host_parts


def _values(store: MetaStore, prefix: bytes) -> list[bytes]:
    return [value for _, value in store.range(prefix)]


def _describe_names(names: list[str]) -> str:
    if not names:
        return "are none"
    text = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return f"{'is' if len(names) == 1 else 'are'} {text}"
