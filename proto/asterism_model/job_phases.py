"""Descriptions of the phases of jobs, which daemons, pages and the command share."""

from __future__ import annotations

from collections.abc import Mapping

_PHASES: Mapping[str, str] = {
    "begin": "starting",
    "checkpoint": "starting",
    "waits for a slot": "waiting for a free slot",
    "check what is kept": "verifying the checkpoint",
    "plan": "planning",
    "B1": "alias table: scan weights",
    "B2, B3": "alias table: compute thresholds",
    "sweep": "alias table: pair rows",
    "merge": "alias table: write",
    "audit": "alias table: audit",
    "seal": "sealing the partition",
    "manifest": "writing the manifest",
    "fingerprints of part": "fingerprinting partition",
    "checksums of part": "verifying checksums of partition",
    "compact": "compacting",
}
"""Descriptions of phases by the beginning of their name in storageds."""


def describe_phase(phase: str) -> str:
    """Return the description of a task's phase; a phase without one is returned unchanged."""
    for prefix, description in _PHASES.items():
        if phase == prefix or phase.startswith(f"{prefix} "):
            return description + phase[len(prefix) :]
    return phase
