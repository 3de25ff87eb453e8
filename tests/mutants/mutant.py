"""Record of a mutant: a change of our source, and the check or test that must reject it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: its place, the change that plants it, and the check or test that rejects it."""

    name: str
    met: str
    """Project, issue or habit that the fault comes from."""
    module: str
    changes: tuple[tuple[str, str], ...]
    """(old, new) texts in the module's source as printed by `ast.unparse`.

    Each old text occurs exactly once.
    """
    check: str = ""
    """Name of the check in `tests.distributions.checks` that must reject it."""
    test: str = ""
    """Node id of the test that must fail with the mutant.

    It runs in its own process, which also plants the mutant in the daemons that it starts.
    """
    reason: str = ""
    """Text that the failure must contain: the assertion that detects the fault."""


def change(
    name: str,
    met: str,
    module: str,
    *changes: tuple[str, str],
    check: str = "",
    test: str = "",
    reason: str = "",
) -> Mutant:
    """Return a mutant of one module."""
    return Mutant(
        name=name,
        met=met,
        module=module,
        changes=changes,
        check=check,
        test=test,
        reason=reason,
    )
