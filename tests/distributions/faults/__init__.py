"""Faults of samplers that `tests.distributions.mutants` plants and checks must reject.
The checks belong to `tests.distributions.checks`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A fault: where it was met, the change of our source that plants it, and the check that must
    reject it.
    """

    name: str
    met: str
    module: str
    changes: tuple[tuple[str, str], ...]
    check: str = ""


def change(name: str, met: str, module: str, *changes: tuple[str, str], check: str = "") -> Mutant:
    return Mutant(name=name, met=met, module=module, changes=changes, check=check)
