"""Execution of Euler's GQL: each step runs operators of `asterism.euler`, at one version."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.calls import validation
from asterism.euler import Euler
from asterism.euler.conditions import Comparison, edge_filter, node_filter
from asterism.euler.type_ids import TypeIds
from asterism.graph import Graph
from asterism.name_conversion import as_name
from asterism_model.filters.syntax import Literal
from asterism_model.schema import NodeType
from asterism_proto.errors import InvalidRequest, NotFound
from graphd.operators.call_seeds import statement_step_seed
from graphd.query.ast import Parameter
from graphd.query.errors import located_error, syntax_error
from graphd.query.euler_parser import Argument, EulerPredicate, EulerStep
from graphd.query.parameters import ParameterBindings
from graphd.query.table import Array, ResultTable, TableColumn, array_column

DEFAULT_ALIAS = "result"
"""Name of the last step's result if it has no alias."""
MAX_STEPS = 64
"""Maximum steps of a query."""
_DIGITS = 20
"""Maximum characters of an integer."""
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
}
_REDUCED: Mapping[str, Callable[[Array], Any]] = {"min": np.min, "max": np.max, "mean": np.mean}


class EulerTraversal:
    """State of a running query.

    Parameters
    ----------
    graph : Graph
        Graph at one version.
    bindings : ParameterBindings
        Text and inputs of the query.
    seed : int, optional
        Seed of the first sampling step; the seeds of later steps derive from it.
    """

    def __init__(self, graph: Graph, bindings: ParameterBindings, seed: int | None) -> None:
        self.graph, self._euler = graph, Euler(graph)
        self._types = TypeIds(graph.schema, graph.space)
        self._bindings = bindings
        self.seed = validation.seed(seed)
        self.draw_count = 0
        """Number of sampling steps so far."""
        self._nodes: Array = np.zeros(0, np.int64)
        self._edges: Array | None = None
        """ndarray of int64, shape (m, 3), if the last step returned edges."""
        self._named: dict[str, Array] = {}
        """Nodes by alias."""
        self._columns: list[TableColumn] = []

    def run(self, steps: Sequence[EulerStep]) -> ResultTable:
        """Return the outputs of the named steps, ``name:0`` and so on, each with its own length.

        Errors have the position of their step.
        """
        if len(steps) > MAX_STEPS:
            raise InvalidRequest(f"{len(steps)} steps: expected {MAX_STEPS} at most")
        for index, step in enumerate(steps):
            if step.of:
                self._go_back(step.of, step.at)
            try:
                outputs: list[Any] = _STEPS[step.operation](self, step)
            except (InvalidRequest, NotFound) as error:
                if error.place is not None and "\n" in error.message:
                    raise
                raise located_error(
                    type(error), self._bindings.text, step.at, error.message
                ) from error
            alias = step.alias or (
                DEFAULT_ALIAS if index + 1 == len(steps) and not self._columns else ""
            )
            if alias:
                self._named[alias] = self._nodes
                self._columns += [
                    _column(f"{alias}:{i}", output) for i, output in enumerate(outputs)
                ]
        return ResultTable(columns=tuple(self._columns), rows=-1)

    # -- steps: their outputs --

    def _vertices(self, step: EulerStep) -> list[Any]:
        ids = (
            self._ids("ids", step.arguments[0]).reshape(-1)
            if step.arguments
            else self._missing(step, "v(ids)")
        )
        return [self._at(self._cut(step, ids[self._holds(step.tests, ids)]))]

    def _given_edges(self, step: EulerStep) -> list[Any]:
        edges = (
            self._ids("edges", step.arguments[0])
            if step.arguments
            else self._missing(step, "e(edges)")
        )
        if edges.ndim != 2 or edges.shape[1] != 3:
            raise InvalidRequest(
                f"edges {list(edges.shape)}: expected [m, 3] with sources, destinations and type "
                "ids"
            )
        if step.tests or step.order:
            raise InvalidRequest(
                "filters and orders of given edges: expected none; draw edges with "
                "sampleE(...).has(...)"
            )
        self._edges = edges if step.limit is None else edges[: self._limit(step.limit)]
        return [self._edges]

    def _sample_n(self, step: EulerStep) -> list[Any]:
        names = self._types.node_names(self._bound(step.arguments[0]))
        where = node_filter(self._tests(step.tests), self.graph.schema, names)
        sample = self.graph.sample_nodes(
            self._whole(step.arguments[1]), names, where=where, seed=self._next_seed()
        )
        return [self._at(self._cut(step, sample.nodes))]

    def _sample_n_with_types(self, step: EulerStep) -> list[Any]:
        type_arguments, counts = (
            np.asarray(self._bound(argument)).reshape(-1) for argument in step.arguments
        )
        if len(type_arguments) != len(counts):
            raise InvalidRequest(
                f"{len(type_arguments)} types and {len(counts)} counts: expected a count for "
                "each type"
            )
        rows = []
        for type_argument, count in zip(type_arguments.tolist(), counts.tolist(), strict=True):
            names = self._types.node_names(type_argument)
            where = node_filter(self._tests(step.tests), self.graph.schema, names)
            rows.append(
                self._cut(
                    step,
                    self.graph.sample_nodes(
                        count, names, where=where, seed=self._next_seed()
                    ).nodes,
                )
            )
        return [
            _index([len(row) for row in rows]),
            self._at(np.concatenate(rows) if rows else np.zeros(0, np.int64)),
        ]

    def _sample_e(self, step: EulerStep) -> list[Any]:
        names = self._types.edge_names(self._bound(step.arguments[0]))
        where = edge_filter(self._tests(step.tests), self.graph.schema, names)
        sample = self.graph.sample_edges(
            self._whole(step.arguments[1]), names, where=where, seed=self._next_seed()
        )
        types = self._types.relation_numbers(sample.types).astype(np.int64)
        edges = np.stack([sample.src, sample.dst, types], axis=1)
        order = self._order(step, sample.dst, sample.weights)
        self._edges = edges[order]
        return [self._edges]

    def _out_v(self, step: EulerStep) -> list[Any]:
        return self._neighbors_of(step, "out")

    def _in_v(self, step: EulerStep) -> list[Any]:
        if self._edges is None:
            return self._neighbors_of(step, "in")
        ids = self._edges[:, 1]
        ids = ids[self._holds(step.tests, ids)]
        return [_index([1] * len(ids)), self._at(ids)]

    def _neighbors_of(self, step: EulerStep, direction: str) -> list[Any]:
        names = self._types.edge_names(self._bound(step.arguments[0])) if step.arguments else None
        where = edge_filter(
            self._tests(step.tests),
            self.graph.schema,
            names,
            end="dst" if direction == "out" else "src",
        )
        neighbors = self.graph.neighbors(
            self._here(),
            names,
            ntype=self._types.single_node_type,
            direction=direction,
            where=where,
        )
        pieces = [np.arange(start, stop) for start, stop in pairwise(neighbors.indptr.tolist())]
        return self._rows(
            step,
            pieces,
            neighbors.nodes,
            np.asarray(neighbors.weights),
            self._types.relation_numbers(neighbors.types),
        )

    def _out_e(self, step: EulerStep) -> list[Any]:
        sources = self._here()
        sizes, ids, weights, types = self._out_v(step)
        edge_sources = np.repeat(sources, np.diff(sizes, axis=1).reshape(-1))
        self._edges = np.stack([edge_sources, ids, types.astype(np.int64)], axis=1)
        return [sizes, self._edges, weights]

    def _sample_nb(self, step: EulerStep) -> list[Any]:
        edge_types, count, default = step.arguments
        names, missing = self._types.edge_names(self._bound(edge_types)), self._whole(default)
        where = edge_filter(self._tests(step.tests), self.graph.schema, names)
        sample = self.graph.sample_neighbors(
            self._here(),
            names,
            self._whole(count),
            ntype=self._types.single_node_type,
            where=where,
            seed=self._next_seed(),
        )
        ids = np.where(sample.nodes < 0, np.int64(missing), sample.nodes)
        pieces = [np.arange(i * ids.shape[1], (i + 1) * ids.shape[1]) for i in range(len(ids))]
        return self._rows(
            step,
            pieces,
            ids.reshape(-1),
            np.asarray(sample.weights).reshape(-1),
            self._types.relation_numbers(sample.types).reshape(-1),
        )

    def _sample_lnb(self, step: EulerStep) -> list[Any]:
        """Return a layer of nodes for each row of ``width`` nodes, and the adjacency of both."""
        edge_types, width, count, *rest = step.arguments
        options = [self._bound(argument) for argument in rest]
        measure = str(options[0]) if len(options) == 2 and isinstance(options[0], str) else ""
        layer_width = max(self._whole(width), 1)
        if len(self._here()) % layer_width:
            raise InvalidRequest(
                f"{len(self._here())} nodes in layers of {layer_width}: expected a multiple of it"
            )
        nodes = self._here().reshape(-1, layer_width)
        sample = self._euler.sample_neighbor_layerwise(
            nodes,
            self._bound(edge_types),
            self._whole(count),
            self._whole(rest[-1]) if rest else -1,
            measure,
            seed=self._next_seed(),
        )
        ids, adjacency = sample
        return [
            _index([ids.shape[1]] * len(ids)),
            self._at(ids.reshape(-1)),
            np.asarray(adjacency.indices, np.int64),
        ]

    def _selected(self, step: EulerStep) -> list[Any]:
        self._go_back(str(getattr(step.arguments[0], "text", "")), step.at)
        return [self._nodes]

    def _values(self, step: EulerStep) -> list[Any]:
        outputs: list[Any] = []
        reduced = dict(step.reduced)
        for argument in step.arguments:
            name = str(getattr(argument, "text", argument))
            lengths, data = self._feature(name)
            if name in reduced:
                lengths, data = _reduced(reduced[name], lengths, data)
            outputs += [_index(lengths), data]
        return outputs

    def _label(self, step: EulerStep) -> list[Any]:
        return [np.asarray(self._euler.get_node_type(self._here()))]

    # -- building blocks of steps --

    def _feature(self, name: str) -> tuple[list[int], Array]:
        """Return a feature of the current nodes or edges: row lengths and all values."""
        schema = self.graph.schema
        schema_types: Sequence[Any] = (
            schema.node_types if self._edges is None else schema.edge_types
        )
        features = [
            feature
            for schema_type in schema_types
            for feature in schema_type.features
            if feature.name in (name, as_name(name))
        ]
        if not features:
            raise NotFound(f"no feature {name!r} of {'nodes' if self._edges is None else 'edges'}")
        of_edge, rows = (
            "" if self._edges is None else "edge_",
            self._here() if self._edges is None else self._edges,
        )
        if features[0].kind == "dense":
            width = max(int(np.prod(feature.shape)) for feature in features)
            (dense,) = getattr(self._euler, f"get_{of_edge}dense_feature")(rows, [name], [width])
            return [width] * len(rows), np.asarray(dense).reshape(-1)
        if features[0].kind == "bytes":
            (texts,) = getattr(self._euler, f"get_{of_edge}binary_feature")(rows, [name])
            return [len(text) for text in texts], np.frombuffer(b"".join(texts), np.uint8)
        (sparse,) = getattr(self._euler, f"get_{of_edge}sparse_feature")(rows, [name])
        return np.bincount(sparse.indices[:, 0], minlength=len(rows)).tolist(), np.asarray(
            sparse.values
        )

    def _holds(self, tests: Sequence[EulerPredicate], ids: Array) -> NDArray[np.bool_]:
        """Return bool[n]: True for each given node that exists and matches a filter."""
        if not tests:
            return np.ones(len(ids), np.bool_)
        kinds = np.asarray(self._euler.get_node_type(ids))
        result, conjunction = np.zeros(len(ids), np.bool_), np.ones(len(ids), np.bool_)
        bound_tests = self._tests(tests)
        node_filter(bound_tests, self.graph.schema, None)  # rejects invalid predicates
        for test in bound_tests:
            matches = np.zeros(len(ids), np.bool_)
            for type_id, node_type in enumerate(self.graph.schema.node_types):
                rows = np.flatnonzero(kinds == type_id)
                matches[rows] = self._holds_of(test, node_type, ids[rows])
            conjunction &= matches
            if test.connective != "and":
                result, conjunction = result | conjunction, np.ones(len(ids), np.bool_)
        return result

    def _holds_of(self, test: Comparison, node_type: NodeType, ids: Array) -> NDArray[np.bool_]:
        """Evaluate one predicate on nodes of one type."""
        if test.operator == "label" or test.name == "type":
            names: Sequence[str | Literal] = (
                [test.name] if test.operator == "label" else test.values
            )
            matches = any(
                node_type.name in (name, as_name(name))
                for name in (_text(test, value) for value in names)
            )
            return np.full(len(ids), matches != (test.operator in ("ne", "not_in")))
        feature = next(
            (candidate for candidate in node_type.features if candidate.name == test.name), None
        )
        if feature is None and test.name not in ("id", "weight"):
            return np.zeros(len(ids), np.bool_)
        column: Any = (
            ids
            if test.name == "id"
            else self.graph.node_features(ids, [test.name], node_type.name)[test.name]
        )
        if test.operator == "key":
            return (
                np.diff(column[0]) > 0 if isinstance(column, tuple) else np.ones(len(ids), np.bool_)
            )
        if isinstance(column, tuple):
            indptr, values = column
            column = np.array(
                [values[start:stop].tobytes() for start, stop in pairwise(indptr.tolist())], object
            )
            expected: list[Any] = [_text(test, value).encode() for value in test.values]
        else:
            numbers = [_number(test, value) for value in test.values]
            with np.errstate(over="ignore"):
                expected = [
                    column.dtype.type(float(number)) if column.dtype.kind == "f" else number
                    for number in numbers
                ]
        if test.operator in ("in", "not_in"):
            is_member = np.logical_or.reduce(
                [np.asarray(column == value, np.bool_) for value in expected]
            )
            return np.asarray(is_member if test.operator == "in" else ~is_member)
        return np.asarray(_SIGNS[test.operator](column, expected[0]), np.bool_)

    def _tests(self, tests: Sequence[EulerPredicate]) -> list[Comparison]:
        bound_tests = []
        for test in tests:
            values: list[str | Literal] = []
            for argument in test.values:
                values += (
                    self._bindings.literals(argument)
                    if isinstance(argument, Parameter)
                    else [argument.text]
                )
            bound_tests.append(
                Comparison(
                    name=test.name, operator=test.sign, values=tuple(values), connective=test.join
                )
            )
        return bound_tests

    def _rows(
        self, step: EulerStep, pieces: Sequence[Array], ids: Array, weights: Array, types: Array
    ) -> list[Any]:
        """Return index, ids, weights and types of neighbors, each row sorted and truncated."""
        ordered_pieces = [piece[self._order(step, ids[piece], weights[piece])] for piece in pieces]
        positions = np.concatenate(ordered_pieces) if ordered_pieces else np.zeros(0, np.int64)
        return [
            _index([len(piece) for piece in ordered_pieces]),
            self._at(ids[positions]),
            weights[positions],
            types[positions],
        ]

    def _order(self, step: EulerStep, ids: Array, weights: Array) -> Array:
        order = np.arange(len(ids))
        if step.order is not None:
            sort_key, descending = step.order
            if sort_key not in ("id", "weight"):
                raise InvalidRequest(f"order_by {sort_key}: expected id or weight")
            keys = ids if sort_key == "id" else weights
            order = np.lexsort((ids, -keys if descending else keys))
        return order if step.limit is None else order[: self._limit(step.limit)]

    def _cut(self, step: EulerStep, ids: Array) -> Array:
        """Sort and truncate nodes."""
        weights = ids
        if step.order is not None and step.order[0] == "weight":
            weights = np.zeros(len(ids))
            node_types = self._euler.get_node_type(ids)
            for type_id, node_type in enumerate(self.graph.schema.node_types):
                weights[node_types == type_id] = self.graph.node_features(
                    ids[node_types == type_id], ["weight"], node_type.name
                )["weight"]
        return ids[self._order(step, ids, weights)]

    def _at(self, ids: Array) -> Array:
        """Make nodes the current nodes; return them."""
        self._nodes, self._edges = ids, None
        return ids

    def _here(self) -> Array:
        return self._nodes if self._edges is None else self._edges[:, 1]

    def _go_back(self, alias: str, position: int) -> None:
        if alias not in self._named:
            raise syntax_error(
                self._bindings.text,
                position,
                f"select of {alias!r}",
                [f"an earlier alias ({', '.join(self._named) or 'none'})"],
            )
        self._at(self._named[alias])

    def _next_seed(self) -> int:
        self.draw_count += 1
        return statement_step_seed(self.seed, self.draw_count)

    def _bound(self, argument: Argument) -> Any:
        """Return an argument's value: the input of that name, a number, or the text itself."""
        if isinstance(argument, Parameter):
            return self._bindings.lookup(argument)
        value = self._bindings.values.get(argument.text)
        if value is not None:
            return list(value) if isinstance(value, tuple) else value
        return (
            int(argument.text)
            if len(argument.text) <= _DIGITS and argument.text.lstrip("+-").isdigit()
            else argument.text
        )

    def _ids(self, name: str, argument: Argument) -> NDArray[np.int64]:
        """Return ids in their given shape."""
        values = validation.as_array(name, self._bound(argument), "integers")
        return validation.ids(name, values.reshape(-1), minimum=-1).reshape(values.shape)

    def _limit(self, argument: Argument) -> int:
        """Return a number of rows to keep; negative numbers are refused."""
        return validation.count("limit", self._whole(argument))

    def _whole(self, argument: Argument) -> int:
        value = np.asarray(self._bound(argument))
        if value.size != 1 or value.dtype.kind not in "iu" or value > np.iinfo(np.int64).max:
            raise syntax_error(
                self._bindings.text,
                argument.at,
                f"{getattr(argument, 'text', argument)}",
                ["an integer, or the name of an input with one"],
            )
        return int(value.reshape(-1)[0])

    def _missing(self, step: EulerStep, expected: str) -> Any:
        raise syntax_error(self._bindings.text, step.at, "no input", [expected])


def _index(lengths: Sequence[int]) -> Array:
    """Return the begin and end of each row: int32[n, 2]."""
    ends = np.cumsum(lengths, dtype=np.int32) if len(lengths) else np.zeros(0, np.int32)
    return np.stack([ends - np.asarray(lengths, np.int32), ends], axis=1).astype(np.int32)


def _text(test: Comparison, value: str | Literal) -> str:
    """Return the string that a column of strings is compared with."""
    if isinstance(value, str):
        return value.strip("'\"")
    if not isinstance(value.value, str):
        raise InvalidRequest(f"{test.name} {test.operator} {value}: expected a string")
    return value.value


def _number(test: Comparison, value: str | Literal) -> int | float:
    """Return the number that a column of numbers is compared with."""
    if isinstance(value, Literal):
        if not isinstance(value.value, str):
            return value.value
    else:
        with suppress(ValueError):
            return int(value)
        with suppress(ValueError):
            return float(value)
    raise InvalidRequest(f"{test.name} {test.operator} {value}: expected a number")


def _reduced(function: str, lengths: Sequence[int], data: Array) -> tuple[list[int], Array]:
    """Reduce each nonempty row to one value."""
    if function not in _REDUCED:
        raise NotFound(f"no function {function!r}; there are min, max and mean")
    ends = np.cumsum([0, *lengths])
    rows = [
        _REDUCED[function](data[start:stop])
        for start, stop in pairwise(ends.tolist())
        if stop > start
    ]
    return [min(length, 1) for length in lengths], np.array(
        rows, np.float32 if function == "mean" else data.dtype
    )


def _column(name: str, output: Array) -> TableColumn:
    return array_column(name, np.ascontiguousarray(output))


_STEPS: Mapping[str, Callable[[EulerTraversal, EulerStep], list[Any]]] = {
    "vertices": EulerTraversal._vertices,
    "edges": EulerTraversal._given_edges,
    "sample_n": EulerTraversal._sample_n,
    "sample_n_with_types": EulerTraversal._sample_n_with_types,
    "sample_e": EulerTraversal._sample_e,
    "out_v": EulerTraversal._out_v,
    "in_v": EulerTraversal._in_v,
    "out_e": EulerTraversal._out_e,
    "sample_nb": EulerTraversal._sample_nb,
    "sample_lnb": EulerTraversal._sample_lnb,
    "selected": EulerTraversal._selected,
    "values": EulerTraversal._values,
    "label": EulerTraversal._label,
}
"""Methods by operation."""
