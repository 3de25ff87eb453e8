"""Elements of a graph (nodes and edges) and the names of their own weights.

Every package that refers to an element or to the rows' own weights imports the names from here."""

from __future__ import annotations

NODE, EDGE = 1, 2
"""Numbers of the elements, equal to those of `asterism.v1.Element`."""
OWN_WEIGHTS = ("", "weight")
"""Names of the weights that every row has; weight tables have other names."""


def canonical_weight_name(name: str) -> str:
    """Return the canonical form of a weight name: "" for the rows' own weights."""
    return "" if name in OWN_WEIGHTS else name
