"""Routes: the spaces, the host of each partition, and the served versions.

Routes are immutable snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from asterism_model.schema import Schema
from asterism_proto.errors import NotFound, NotReady
from graphd.routing.totals import VersionTotals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedVersion:
    """Published version, as sampling requests identify it."""

    version: int
    digest: str
    totals: VersionTotals


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SpaceRoute:
    """Space and the hosts of its partitions."""

    space_id: int
    name: str
    schema: Schema
    hosts: tuple[str, ...]
    """Uuids of the storageds that serve its partitions."""
    host_of_part: NDArray[np.int32]
    """ndarray of int32, shape (partitions,): positions in ``hosts``."""
    versions: Mapping[int, ServedVersion] = field(default_factory=dict)
    current_version: int = 0
    """Newest version; 0 if there is none yet."""

    def parts_of(self, host: int) -> list[int]:
        """Return the partitions that a host serves, ascending."""
        return [int(part) for part in np.flatnonzero(self.host_of_part == host)]

    def find_version(self, version: int) -> ServedVersion:
        """Return a version by number, 0 for the current one.

        Raises
        ------
        NotReady
            If no version is published yet.
        NotFound
            If this version is not served; the message lists those that are.
        """
        if not self.current_version:
            raise NotReady(f"space {self.name!r} has no published version; submit a build")
        served_version = self.versions.get(version or self.current_version)
        if served_version is None:
            served_numbers = ", ".join(map(str, sorted(self.versions)))
            raise NotFound(
                f"version {version} of space {self.name!r} is not served; those that are: "
                f"{served_numbers}"
            )
        return served_version


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routes:
    """Snapshot of metad's desired state at one catalog revision."""

    revision: int = 0
    spaces: Mapping[str, SpaceRoute] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    """uuid of a storaged -> host:port."""
    lists_names: bool = True
    """False if callers may not see all spaces, so that errors list no names of others."""

    def space(self, name: str) -> SpaceRoute:
        """Return a space by name; NotFound lists the existing spaces if callers see all."""
        space = self.spaces.get(name)
        if space is None:
            names = (
                f"there are {', '.join(sorted(self.spaces)) or 'none'}"
                if self.lists_names
                else "SHOW SPACES lists yours"
            )
            raise NotFound(f"no space {name!r}; {names}")
        return space
