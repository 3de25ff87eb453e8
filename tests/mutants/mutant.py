"""The record of a mutant: a change of our source, and what must notice it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: its place, the change of our source that plants it, and what must reject it."""

    name: str
    met: str
    """Project, issue or habit in which the fault was found."""
    module: str
    changes: tuple[tuple[str, str], ...]
    """(old, new) texts of the module's source as `ast.unparse` prints it; each old text is there
    once.
    """
    check: str = ""
    """Name of the check in `tests.distributions.checks` that must reject it."""
    test: str = ""
    """Node id of the test that must fail with it, which runs in a process of its own and plants it
    in the daemons that it starts too.
    """
    reason: str = ""
    """Text that the failure must contain: the assertion that notices the fault."""


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
