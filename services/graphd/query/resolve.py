"""Sampling and read statements with bound values, checked against the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.graph import Graph
from asterism_model.excluded_edges import ANY_EDGE_ID
from asterism_model.schema import EdgeType
from asterism_proto.errors import InvalidRequest, NotFound
from graphd.query import projection
from graphd.query.ast import (
    DrawStatement,
    EdgeEnd,
    ExcludedPairs,
    Hop,
    Parameter,
    TypeName,
    YieldItem,
)
from graphd.query.errors import located_error, syntax_error
from graphd.query.parameters import FilterText, ParameterBindings, build_filter_text

MAX_STEPS = 64
"""Maximum steps of a statement."""
_DIRECTIONS = {"": ("out",), "REVERSELY": ("in",), "BIDIRECT": ("out", "in")}
"""Directions in which edges are followed: along them, against them, or both."""
_VERBS = {"out": "starts", "in": "ends"}


@dataclass(frozen=True, kw_only=True, eq=False)
class ResolvedDraw:
    """Sampling or read statement with bound values."""

    draw: DrawStatement
    graph: Graph
    bindings: ParameterBindings
    seed: int | None
    version: int | None
    items: tuple[YieldItem, ...]
    """Columns of its table."""
    required_columns: frozenset[str]
    """Columns that rows need for these items."""
    directions: tuple[str, ...]
    """Directions in which edges are followed: along them, against them, or both."""
    filters: Mapping[str, FilterText]
    """Filters of edges that are followed ``out`` and ``in``; the names of the ends differ."""

    def single_direction(self) -> str:
        """Return the single direction; raise InvalidRequest for BIDIRECT if it is unsupported."""
        if len(self.directions) > 1:
            raise self.option_error(
                "direction",
                "BIDIRECT",
                ["REVERSELY or nothing here; only NEIGHBORS and GO support BIDIRECT"],
            )
        return self.directions[0]

    def read_arguments(self, direction: str) -> dict[str, Any]:
        """Return the arguments of every read."""
        return {
            "weight": self.bindings.name(self.draw.options.weight),
            "where": self.filters[direction].text,
            "version": self.version,
            **self.exclusions,
        }

    def draw_arguments(self, direction: str = "out") -> dict[str, Any]:
        """Return the arguments of every sampling call."""
        return {
            "weighted": not self.draw.options.uniform,
            "seed": self.seed,
            **self.read_arguments(direction),
        }

    @property
    def replace(self) -> bool:
        """True if sampling is with replacement."""
        return self.draw.options.replace is not False

    @property
    def node_type(self) -> str | None:
        """Type of the start nodes; None if the edge types imply it."""
        if self.draw.node_type is not None:
            return self.draw.node_type.text
        schema = self.graph.schema
        if len(self.directions) == 1 or schema.ids == "global":
            return None
        edges = [
            schema.edge_types[schema.edge_type_id(name)]
            for name in self.hops[0] or [edge.name for edge in schema.edge_types]
        ]
        starts = {edge.src_type for edge in edges}
        if len(starts) > 1:
            raise self.option_error(
                "direction",
                f"BIDIRECT from nodes of {', '.join(sorted(starts))}",
                ["their type: FROM ... ON type"],
            )
        return starts.pop()

    @property
    def nodes(self) -> NDArray[Any]:
        """Start nodes as int64 in their given shape, with string ids resolved."""
        return self.resolve_ids(self.draw.nodes)

    def resolve_ids(
        self, values: Parameter | tuple[int | str, ...] | None, node_type: str | None = None
    ) -> NDArray[Any]:
        """Return nodes in their given shape, from ids or string ids; -1 is missing."""
        ids = self.bindings.ids(values)
        if ids.dtype != object:
            return ids
        if not self.graph.schema.has_string_ids:
            first = repr(ids.reshape(-1)[0]) if ids.size else "no string"
            if isinstance(values, Parameter):
                raise syntax_error(
                    self.bindings.text,
                    values.at,
                    f"{values} = {first:.80}",
                    ["integers, the ids of this space"],
                )
            raise InvalidRequest(
                f"node {first:.80}: expected an integer, because ids of this space are integers"
            )
        return self.graph.node_ids(ids, node_type, missing="none", version=self.version)

    @property
    def edge_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Sources and destinations of edges that are fetched by their ends."""
        edge = self.graph.schema.edge_types[self.graph.schema.edge_type_id(self.draw.types[0].text)]
        pieces = [self._ends_of(pair, edge, "") for pair in self.draw.pairs]
        return np.concatenate([src for src, _ in pieces]), np.concatenate(
            [dst for _, dst in pieces]
        )

    def _ends_of(
        self, pair: tuple[EdgeEnd, EdgeEnd], edge: EdgeType, option: str
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return sources and destinations of a pair of ends, each one node or several."""
        src, dst = (
            self.resolve_ids(end if isinstance(end, Parameter) else (end,), node_type)
            .reshape(-1)
            .astype(np.int64)
            for end, node_type in zip(pair, (edge.src_type, edge.dst_type), strict=True)
        )
        if len(src) != len(dst):
            count_texts = " -> ".join(
                f"{end} of {len(ids)}" for end, ids in zip(pair, (src, dst), strict=True)
            )
            raise self.option_error(option, count_texts, ["as many sources as destinations"])
        return src, dst

    @cached_property
    def exclusions(self) -> dict[str, Any]:
        """Arguments of calls about the edges of EXCLUDE; empty without that clause."""
        schema = self.graph.schema
        edges: dict[str, list[tuple[NDArray[np.int64], ...]]] = {}
        for clause in self.draw.options.excluded:
            edge = schema.edge_types[self._excluded_type(clause)]
            pieces = [self._excluded_columns(pair, edge) for pair in clause.pairs]
            edges.setdefault(edge.name, []).extend(pieces)
            if clause.reverse_type is not None:
                edges.setdefault(self._reverse_type(clause.reverse_type, edge), []).extend(
                    (dst, src, np.full(len(src), ANY_EDGE_ID, np.int64)) for src, dst, _ in pieces
                )
        if not edges:
            return {}
        return {
            "exclude": {
                name: tuple(np.concatenate(column) for column in zip(*pieces, strict=True))
                for name, pieces in edges.items()
            }
        }

    def _excluded_type(self, clause: ExcludedPairs) -> int:
        if clause.edge_type is not None:
            return self.graph.schema.edge_type_id(clause.edge_type.text)
        followed = self.edge_types()
        if len(followed) != 1:
            names = ", ".join(self.graph.schema.edge_types[i].name for i in sorted(followed))
            raise syntax_error(
                self.bindings.text,
                clause.at,
                f"EXCLUDE without an edge type, along {names}",
                ["EXCLUDE ON and the type of these edges"],
            )
        return followed.pop()

    def _excluded_columns(
        self, pair: tuple[EdgeEnd, EdgeEnd, Parameter | int | None], edge: EdgeType
    ) -> tuple[NDArray[np.int64], ...]:
        """Return sources, destinations and edge ids; -1 stands for all edges between the two."""
        src, dst = self._ends_of(pair[:2], edge, "excluded")
        edge_id = pair[2]
        if edge_id is None:
            return src, dst, np.full(len(src), ANY_EDGE_ID, np.int64)
        ids = self.bindings.ids(edge_id if isinstance(edge_id, Parameter) else (edge_id,))
        ids = ids.reshape(-1)
        if ids.dtype == object or len(ids) != len(src):
            found = "texts" if ids.dtype == object else f"{edge_id} of {len(ids)}"
            raise self.option_error(
                "excluded", f"@ {found}", [f"{len(src)} integers, an edge id for each pair"]
            )
        return src, dst, ids

    def _reverse_type(self, name: TypeName, edge: EdgeType) -> str:
        """Return the name of a reverse edge type; its ends must be those of ``edge``, swapped."""
        schema = self.graph.schema
        reverse = schema.edge_types[schema.edge_type_id(name.text)]
        if (reverse.src_type, reverse.dst_type) != (edge.dst_type, edge.src_type):
            raise syntax_error(
                self.bindings.text,
                name.at,
                f"REVERSE {reverse.name}",
                [f"an edge type from {edge.dst_type} to {edge.src_type}"],
            )
        return reverse.name

    @property
    def count(self) -> int:
        """Number of rows to sample, or number of steps."""
        return (
            1
            if self.draw.count is None
            else self.bindings.integer(self.draw.count, "a number of rows")
        )

    @property
    def types(self) -> list[str] | None:
        """Types to sample from; None for all."""
        return [name.text for name in self.draw.types] or None

    @property
    def hops(self) -> list[list[str] | None]:
        """Edge types of each hop; None for all."""
        return [[name.text for name in hop] or None for hop in self.draw.hops]

    def single_hop(self) -> list[str] | None:
        """Return the edge types of the only hop."""
        if len(self.draw.hops) > 1:
            raise self._extra_hops_error(
                self.draw.hops[1:],
                "the edge types of one step; only GO, WALK and LAYERS have several steps",
            )
        return self.hops[0]

    def _extra_hops_error(self, hops: Sequence[Hop], expected: str) -> Exception:
        """Return the error of surplus hops, at the first name among them."""
        first_name = next((name for hop in hops for name in hop), None)
        return syntax_error(
            self.bindings.text,
            self.draw.at if first_name is None else first_name.at,
            "THEN",
            [expected],
        )

    def hop_path(self, steps: int) -> list[list[str] | None]:
        """Return the edge types of each step; the hops repeat if there are more steps."""
        if not 1 <= steps <= MAX_STEPS:
            raise self.option_error("", f"{steps} steps", [f"1 to {MAX_STEPS} steps"])
        if len(self.hops) > steps:
            raise self._extra_hops_error(
                self.draw.hops[steps:],
                f"the edge types of {'one step' if steps == 1 else f'{steps} steps'}",
            )
        return [self.hops[step % len(self.hops)] for step in range(steps)]

    def edge_types(self) -> set[int]:
        """Return the edge types that rows may have."""
        schema, draw = self.graph.schema, self.draw
        type_names = (
            draw.types
            if draw.kind in ("edges", "fetch")
            else tuple(name for hop in draw.hops for name in hop)
        )
        if (
            draw.kind == "fetch"
            and not draw.pairs
            and any(node_type.name == type_names[0].text for node_type in schema.node_types)
        ):
            return set()
        matches_all = not type_names or not all(draw.hops)
        return (
            set(range(len(schema.edge_types)))
            if matches_all
            else {schema.edge_type_id(name.text) for name in type_names}
        )

    def node_types(self) -> set[int]:
        """Return the node types that rows may have if they are nodes."""
        schema, draw = self.graph.schema, self.draw
        if draw.hops:
            edges = [schema.edge_types[type_id] for type_id in self.edge_types()]
            return {
                schema.node_type_id(edge.dst_type if direction == "out" else edge.src_type)
                for edge in edges
                for direction in self.directions
            }
        type_names = [draw.node_type] if draw.like and draw.node_type else draw.types
        type_ids = {node_type.name: type_id for type_id, node_type in enumerate(schema.node_types)}
        return {type_ids[name.text] for name in type_names if name.text in type_ids} or set(
            type_ids.values()
        )

    def option_error(self, option: str, found: str, expected: Sequence[str]) -> Exception:
        """Return the error of an option that this statement does not support."""
        return syntax_error(
            self.bindings.text,
            dict(self.draw.options.places).get(option, self.draw.at),
            found,
            expected,
        )


def resolve_draw(
    draw: DrawStatement,
    graph: Graph,
    bindings: ParameterBindings,
    *,
    seed: int | None,
    version: int | None,
) -> ResolvedDraw:
    """Bind the values of a statement; NotFound and InvalidRequest have their positions."""
    options = draw.options
    _check_types(draw, graph, bindings)
    items, directions = projection.yield_items(draw, graph), _DIRECTIONS[options.direction]
    return ResolvedDraw(
        draw=draw,
        graph=graph,
        bindings=bindings,
        seed=seed
        if options.seed is None
        else _resolve_option(
            draw, bindings, "seed", lambda: bindings.integer(options.seed or 0, "a seed")
        ),
        version=version
        if options.version is None
        else _resolve_option(
            draw,
            bindings,
            "version",
            lambda: bindings.nonnegative_integer(options.version or 0, "a version"),
        ),
        items=items,
        required_columns=projection.required_columns(items),
        directions=directions,
        filters={
            direction: build_filter_text(options.where, bindings, reverse=direction == "in")
            for direction in directions
        },
    )


def _resolve_option(
    draw: DrawStatement, bindings: ParameterBindings, option: str, evaluate: Callable[[], int]
) -> int:
    """Return the value of an option; its errors have the option's position."""
    try:
        return evaluate()
    except InvalidRequest as error:
        if error.place is not None:
            raise
        raise located_error(
            InvalidRequest, bindings.text, dict(draw.options.places)[option], error.message
        ) from None


def _check_types(draw: DrawStatement, graph: Graph, bindings: ParameterBindings) -> None:
    """Look up every named type; raise NotFound with its position."""
    schema = graph.schema
    nodes: list[TypeName] = [
        *(draw.types if draw.kind in ("vertices", "negatives") else ()),
        *([draw.node_type] if draw.node_type else []),
    ]
    edges: list[TypeName] = [
        *(draw.types if draw.kind == "edges" else ()),
        *(name for hop in draw.hops for name in hop),
        *(
            name
            for clause in draw.options.excluded
            for name in (clause.edge_type, clause.reverse_type)
            if name is not None
        ),
    ]
    if draw.kind == "fetch" and (
        draw.pairs
        or not any(node_type.name == draw.types[0].text for node_type in schema.node_types)
    ):
        edges.append(draw.types[0])
    for lookup, names in ((schema.node_type_id, nodes), (schema.edge_type_id, edges)):
        for name in names:
            try:
                lookup(name.text)
            except NotFound as error:
                raise located_error(NotFound, bindings.text, name.at, error.message) from None
    _check_first_hop(draw, graph, bindings)


def _check_first_hop(draw: DrawStatement, graph: Graph, bindings: ParameterBindings) -> None:
    """Raise InvalidRequest at OVER if no edge type of the first hop has the nodes' type."""
    if draw.node_type is None or not draw.hops or not draw.hops[0]:
        return
    schema, directions = graph.schema, _DIRECTIONS[draw.options.direction]
    edges = [schema.edge_types[schema.edge_type_id(name.text)] for name in draw.hops[0]]
    ends = {
        edge.src_type if direction == "out" else edge.dst_type
        for edge in edges
        for direction in directions
    }
    if draw.node_type.text not in ends:
        verb = " or ".join(_VERBS[direction] for direction in directions)
        raise located_error(
            InvalidRequest,
            bindings.text,
            draw.hops[0][0].at,
            f"none of {', '.join(edge.name for edge in edges)} {verb} at {draw.node_type.text}",
        )
