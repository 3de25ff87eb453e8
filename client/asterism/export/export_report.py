"""What an export says when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PartReport:
    """One part of an export."""

    part: int
    nodes: Mapping[str, int]
    """Nodes that it owns, by type."""
    edges: Mapping[str, int]
    """Edges that it owns (those into its nodes), by type."""
    halo_nodes: int
    """Nodes of other parts that it holds beside."""
    outer_edges: int
    """Edges of other parts that it holds beside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """An export that stands."""

    out: str | Path
    """The folder, or the address."""
    config: str | Path
    """The JSON file that DGL's ``load_partition`` takes."""
    version: int
    """The version of the space that was exported."""
    seed: int
    assign: str
    """``random``, ``metis``, or the folder that the parts were read from."""
    parts: tuple[PartReport, ...]
    edge_cut: int
    """Edges whose ends lie in different parts."""
    warnings: tuple[str, ...]
    """What DGL will stumble over, and what was left out."""
    seconds: float

    @classmethod
    def from_manifest(
        cls, out: str | Path, config: str | Path, manifest: Mapping[str, Any], seconds: float
    ) -> ExportReport:
        """The report of an export with this manifest."""
        return cls(
            out=out,
            config=config,
            version=manifest["version"],
            seed=manifest["seed"],
            assign=manifest["assign"],
            parts=tuple(
                PartReport(
                    part=part,
                    nodes={label: counts[part] for label, counts in manifest["nodes"].items()},
                    edges={label: counts[part] for label, counts in manifest["edges"].items()},
                    halo_nodes=manifest["halo_nodes"][part],
                    outer_edges=manifest["outer_edges"][part],
                )
                for part in range(manifest["parts"])
            ),
            edge_cut=manifest["edge_cut"],
            warnings=tuple(manifest["warnings"]),
            seconds=seconds,
        )

    @property
    def nodes(self) -> int:
        """How many nodes were written."""
        return sum(sum(part.nodes.values()) for part in self.parts)

    @property
    def edges(self) -> int:
        """How many edges were written."""
        return sum(sum(part.edges.values()) for part in self.parts)
