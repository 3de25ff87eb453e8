"""Id types of metad. Distinct types let mypy reject an id of the wrong kind."""

from __future__ import annotations

from typing import NewType

SpaceId = NewType("SpaceId", int)
LoadId = NewType("LoadId", int)
JobId = NewType("JobId", int)
TaskId = NewType("TaskId", int)
PinId = NewType("PinId", int)
HostId = NewType("HostId", str)
"""UUID of a daemon, kept across restarts and changes of address."""
