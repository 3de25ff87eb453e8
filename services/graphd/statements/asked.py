"""A draw or read of a statement with its values in place, checked against the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_proto.errors import InvalidRequest, NotFound
from graphd.statements import yielding
from graphd.statements.binding import Bindings, Condition, condition_of
from graphd.statements.faults import placed, wrong
from graphd.statements.records import Draw, Hop, Item, Parameter, TypeName

MOST_STEPS = 64
"""Of one statement."""
_WAYS = {"": ("out",), "REVERSELY": ("in",), "BIDIRECT": ("out", "in")}
"""Along the edges, or against them, or both."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """What a draw or read asks for."""

    draw: Draw
    graph: Graph
    bindings: Bindings
    seed: int | None
    version: int | None
    items: tuple[Item, ...]
    """The columns of its table."""
    wants: frozenset[str]
    """What rows must have for these columns."""
    ways: tuple[str, ...]
    """Along the edges, or against them, or both."""
    conditions: Mapping[str, Condition]
    """Of edges that are followed ``out`` and ``in``; what the ends are called differs."""

    def way(self) -> str:
        """Along the edges or against them; InvalidRequest where both are asked for, of what goes one way only."""
        if len(self.ways) > 1:
            raise self.refusal("direction", "BIDIRECT", ["REVERSELY, or nothing: it is for NEIGHBORS and GO"])
        return self.ways[0]

    def reading(self, way: str) -> dict[str, Any]:
        """Arguments of every read."""
        return {
            "weight": self.bindings.name(self.draw.options.weight),
            "where": self.conditions[way].text,
            "version": self.version,
        }

    def drawing(self, way: str = "out") -> dict[str, Any]:
        """Arguments of every draw."""
        return {"weighted": not self.draw.options.uniform, "seed": self.seed, **self.reading(way)}

    @property
    def replace(self) -> bool:
        """Whether what was drawn may be drawn again."""
        return self.draw.options.replace is not False

    @property
    def node_type(self) -> str | None:
        """Of the nodes that it starts from; None: what the edge types say."""
        if self.draw.node_type is not None:
            return self.draw.node_type.text
        schema = self.graph.schema
        if len(self.ways) == 1 or schema.ids == "global":
            return None
        edges = [schema.edge_types[schema.edge_type_id(name)] for name in self.hops[0] or [edge.name for edge in schema.edge_types]]
        starts = {edge.src_type for edge in edges}
        if len(starts) > 1:
            raise self.refusal("direction", f"BIDIRECT from nodes of {', '.join(sorted(starts))}", ["their type: FROM ... ON type"])
        return starts.pop()

    @property
    def nodes(self) -> NDArray[Any]:
        """Where it starts; int64 in the shape that came, of what nodes are called too."""
        return self.ids_of(self.draw.nodes)

    def ids_of(self, values: Parameter | tuple[int | str, ...] | None, kind: str | None = None) -> NDArray[Any]:
        """Nodes in the shape that came, by their ids or by what nodes (of a type) are called; -1 where none is."""
        given = self.bindings.ids(values)
        if given.dtype != object:
            return given
        if not self.graph.schema.named:
            first = repr(given.reshape(-1)[0]) if given.size else "no text"
            if isinstance(values, Parameter):
                raise wrong(self.bindings.text, values.at, f"{values} = {first:.80}", ["whole numbers: ids of this space"])
            raise InvalidRequest(f"node {first:.80}: ids of this space are whole numbers, not texts")
        return self.graph.node_ids(given, kind, missing="none", version=self.version)

    @property
    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sources and destinations of edges that are fetched by them."""
        edge = self.graph.schema.edge_types[self.graph.schema.edge_type_id(self.draw.types[0].text)]
        pieces = []
        for pair in self.draw.pairs:
            src, dst = (
                self.ids_of(end if isinstance(end, Parameter) else (end,), kind).reshape(-1).astype(np.int64)
                for end, kind in zip(pair, (edge.src_type, edge.dst_type), strict=True)
            )
            if len(src) != len(dst):
                said = " -> ".join(f"{end} of {len(ids)}" for end, ids in zip(pair, (src, dst), strict=True))
                raise self.refusal("", said, ["as many sources as destinations"])
            pieces.append((src, dst))
        return np.concatenate([src for src, _ in pieces]), np.concatenate([dst for _, dst in pieces])

    @property
    def count(self) -> int:
        """How many are drawn, or steps gone."""
        return 1 if self.draw.count is None else self.bindings.whole(self.draw.count, "a number of rows")

    @property
    def types(self) -> list[str] | None:
        """Of what is drawn; None: all."""
        return [name.text for name in self.draw.types] or None

    @property
    def hops(self) -> list[list[str] | None]:
        """The edge types of each hop; None: all."""
        return [[name.text for name in hop] or None for hop in self.draw.hops]

    def hop(self) -> list[str] | None:
        """The edge types of the one hop that there is."""
        if len(self.draw.hops) > 1:
            raise self._then(self.draw.hops[1:], "the edge types of one step: those of several go with GO, WALK and LAYERS")
        return self.hops[0]

    def _then(self, hops: Sequence[Hop], expected: str) -> Exception:
        """The error of steps that are not gone, at the first name among them."""
        later = next((name for hop in hops for name in hop), None)
        return wrong(self.bindings.text, self.draw.at if later is None else later.at, "THEN", [expected])

    def path(self, steps: int) -> list[list[str] | None]:
        """The edge types of so many steps: the hops, begun again where there are more steps."""
        if not 1 <= steps <= MOST_STEPS:
            raise self.refusal("", f"{steps} steps", [f"1 to {MOST_STEPS} steps"])
        if len(self.hops) > steps:
            raise self._then(self.draw.hops[steps:], f"the edge types of {'one step' if steps == 1 else f'{steps} steps'}")
        return [self.hops[step % len(self.hops)] for step in range(steps)]

    def edge_types(self) -> set[int]:
        """The edge types that rows can be of."""
        schema, draw = self.graph.schema, self.draw
        named = draw.types if draw.kind in ("edges", "fetch") else tuple(name for hop in draw.hops for name in hop)
        if draw.kind == "fetch" and not draw.pairs and any(kind.name == named[0].text for kind in schema.node_types):
            return set()
        everything = not named or not all(draw.hops)
        return set(range(len(schema.edge_types))) if everything else {schema.edge_type_id(name.text) for name in named}

    def node_types(self) -> set[int]:
        """The node types that rows can be of, where they are nodes."""
        schema, draw = self.graph.schema, self.draw
        if draw.hops:
            edges = [schema.edge_types[at] for at in self.edge_types()]
            return {schema.node_type_id(edge.dst_type if way == "out" else edge.src_type) for edge in edges for way in self.ways}
        named = [draw.node_type] if draw.like and draw.node_type else draw.types
        known = {kind.name: at for at, kind in enumerate(schema.node_types)}
        return {known[name.text] for name in named if name.text in known} or set(known.values())

    def refusal(self, option: str, found: str, expected: Sequence[str]) -> Exception:
        """The error of an option that can not stand in this statement."""
        return wrong(self.bindings.text, dict(self.draw.options.places).get(option, self.draw.at), found, expected)


def asked_of(draw: Draw, graph: Graph, bindings: Bindings, *, seed: int | None, version: int | None) -> Asked:
    """A draw with its values in place; NotFound and InvalidRequest with their places."""
    options = draw.options
    _check_types(draw, graph, bindings)
    items, ways = yielding.items_of(draw, graph), _WAYS[options.direction]
    return Asked(
        draw=draw,
        graph=graph,
        bindings=bindings,
        seed=seed if options.seed is None else _told(draw, bindings, "seed", lambda: bindings.whole(options.seed or 0, "a seed")),
        version=version if options.version is None else _told(draw, bindings, "version", lambda: bindings.number(options.version or 0, "a version")),
        items=items,
        wants=yielding.wants(items),
        ways=ways,
        conditions={way: condition_of(options.where, bindings, reverse=way == "in") for way in ways},
    )


def _told(draw: Draw, bindings: Bindings, option: str, value: Callable[[], int]) -> int:
    """The value of an option, its errors with its place."""
    try:
        return value()
    except InvalidRequest as error:
        if error.place is not None:
            raise
        raise placed(InvalidRequest, bindings.text, dict(draw.options.places)[option], error.message) from None


def _check_types(draw: Draw, graph: Graph, bindings: Bindings) -> None:
    """Look for every type that is named; NotFound with its place."""
    schema = graph.schema
    nodes: list[TypeName] = [*(draw.types if draw.kind in ("vertices", "negatives") else ()), *([draw.node_type] if draw.node_type else [])]
    edges: list[TypeName] = [*(draw.types if draw.kind == "edges" else ()), *(name for hop in draw.hops for name in hop)]
    if draw.kind == "fetch" and (draw.pairs or not any(kind.name == draw.types[0].text for kind in schema.node_types)):
        edges.append(draw.types[0])
    for find, names in ((schema.node_type_id, nodes), (schema.edge_type_id, edges)):
        for name in names:
            try:
                find(name.text)
            except NotFound as error:
                raise placed(NotFound, bindings.text, name.at, error.message) from None
