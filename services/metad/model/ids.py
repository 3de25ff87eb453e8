"""The ids that metad gives out or is told: the same number is never two things, and mypy sees to
it.
"""

from __future__ import annotations

from typing import NewType

SpaceId = NewType("SpaceId", int)
LoadId = NewType("LoadId", int)
JobId = NewType("JobId", int)
TaskId = NewType("TaskId", int)
PinId = NewType("PinId", int)
HostId = NewType("HostId", str)
"""A daemon's uuid, which it keeps over restarts and changes of address."""
