"""Names of weights: those of the rows' own weights, and their canonical form."""

from __future__ import annotations

OWN_WEIGHTS = ("", "weight")
"""Names of the weights that every row has; weight tables have other names."""


def canonical_weight_name(name: str) -> str:
    """Return the canonical form of a weight name: "" for the rows' own weights."""
    return "" if name in OWN_WEIGHTS else name
