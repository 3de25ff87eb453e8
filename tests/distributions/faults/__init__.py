"""Faults that samplers in the field have had, or that it would be tempting to make: what
`tests.distributions.mutants` plants.

`draws` has those of tables, words, global draws and neighbors; `rows` those of what is made of
these: different neighbors, probabilities, rows of draws by number, layers, labels; `walks` those of
walks by p and q; `filters` those of draws under filters."""

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
