"""Elements of a graph, nodes and edges, and the names of the weights that both have.

Every package that names an element or the rows' own weights imports them from here."""

from __future__ import annotations

NODE, EDGE = 1, 2
"""Elements, as in `asterism.v1.Element`."""
OWN_WEIGHTS = ("", "weight")
"""Names of the weights that every row has; weight tables have further names."""


def canonical_weight_name(name: str) -> str:
    """Return a weight name with "" for the rows' own weights."""
    return "" if name in OWN_WEIGHTS else name
