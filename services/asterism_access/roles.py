"""Roles in a space, each with the rights of those before it."""

from __future__ import annotations

from enum import IntEnum

from asterism_proto.errors import InvalidRequest

EVERY_SPACE = "*"
"""Space of a grant that holds in every space."""


class Role(IntEnum):
    """Role of a principal in a space. The values are those of ``SpaceRole`` on the wire."""

    READER = 1
    """Samples and reads."""
    WRITER = 2
    """Writes nodes and edges too."""
    BUILDER = 3
    """Submits and stops jobs and pins versions too."""
    ADMIN = 4
    """Grants roles in the space and drops it too."""


_NEBULA_NAMES = {"GUEST": Role.READER, "USER": Role.WRITER, "DBA": Role.BUILDER}


def parse_role(text: str) -> Role:
    """Return the role of a name, in any case; Nebula's names are aliases.

    Raises
    ------
    InvalidRequest
        If there is no such role.
    """
    name = text.strip().upper()
    role = Role.__members__.get(name) or _NEBULA_NAMES.get(name)
    if role is None:
        raise InvalidRequest(
            f"role={text!r}: expected reader, writer, builder or admin (in Nebula's names guest, "
            "user, dba and admin)"
        )
    return role
