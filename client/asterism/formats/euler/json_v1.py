"""JSON of Euler 1.x, one block per node and line, converted to rows of the 2.0 format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asterism.formats.compressed_files import COMPRESSION_SUFFIXES, open_text
from asterism.formats.euler.json_arrays import MAX_ELEMENT, ArrayElement
from asterism.formats.euler.metadata import EulerMeta
from asterism.formats.euler.rows import BadRowError
from asterism.json_objects import parse_constant, unique_object
from asterism_proto.errors import InvalidRequest

FEATURE_KINDS = {"uint64": "sparse", "float": "dense", "binary": "binary"}
"""Names of the feature kinds in 2.0."""
COLUMN_NAMES = {
    "nodes": {"id": "node_id", "type": "node_type", "weight": "node_weight"},
    "edges": {"src": "src_id", "dst": "dst_id", "type": "edge_type"},
}
"""Names in blocks for the columns of 2.0."""
_MAX_DIGITS = 20
"""Largest number of digits of a number that is read; an id has at most 19."""
_METAS = ("{}_meta.json", "meta.json", "meta")


class EulerBlocks:
    """Nodes and edges of a file of blocks.

    Parameters
    ----------
    path : Path
        File of blocks, plain or compressed. The meta file next to it (``NAME_meta.json``,
        ``meta.json`` or ``meta``) states the number of types and features.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        stem = Path(path.stem).stem if path.suffix in COMPRESSION_SUFFIXES else path.stem
        candidates = (path.with_name(name.format(stem.removesuffix("_data"))) for name in _METAS)
        self.meta_path = next((file for file in candidates if file.is_file()), None)
        self._limits: Mapping[str, int] = (
            {} if self.meta_path is None else _read_meta(self.meta_path)
        )

    def meta(self) -> EulerMeta | None:
        """Return the types by number, or None without a meta file."""
        if not self._limits:
            return None
        types = {
            element: tuple(map(str, range(self._limits[f"{element}_type_num"])))
            for element in ("node", "edge")
        }
        return EulerMeta(
            node_types=types["node"],
            edge_types=types["edge"],
            node_dimensions={},
            edge_dimensions={},
        )

    def has_array(self, array: str) -> bool:
        """Return True: blocks have nodes and edges."""
        return True

    def elements(self) -> Iterator[ArrayElement]:
        """Yield the nodes, then the edges."""
        yield from self.elements_of("nodes")
        yield from self.elements_of("edges")

    def elements_of(self, array: str) -> Iterator[ArrayElement]:
        """Yield the nodes or the edges, each with the line of its block.

        A value of type `BadRowError` stands for a bad row.
        """
        for line, nbytes, block in self._blocks():
            if not isinstance(block, dict):
                if array == "nodes":
                    yield ArrayElement(
                        array=array,
                        line=line,
                        value=BadRowError("", block, "expected an object"),
                        nbytes=nbytes,
                    )
            elif array == "nodes":
                # The file is read twice, for nodes and for edges; each pass counts half of the
                # bytes.
                yield ArrayElement(
                    array=array, line=line, value=self._node(block), nbytes=nbytes // 2
                )
            else:
                remaining_bytes = nbytes - nbytes // 2
                for row in self._edges(block):
                    yield ArrayElement(array=array, line=line, value=row, nbytes=remaining_bytes)
                    remaining_bytes = 0

    def _blocks(self) -> Iterator[tuple[int, int, Any]]:
        """Yield line, size in bytes and value of each block."""
        with open_text(self._path, str(self._path)) as file:
            line = 0
            while text := file.readline(MAX_ELEMENT + 1):
                line += 1
                if len(text) > MAX_ELEMENT:
                    raise InvalidRequest(
                        f"{self._path}, line {line}: expected the end of the element within "
                        f"{MAX_ELEMENT:,} characters"
                    )
                if text.isspace():
                    continue
                try:
                    block = json.loads(
                        text, object_pairs_hook=unique_object, parse_constant=parse_constant
                    )
                except UnicodeDecodeError as error:
                    raise InvalidRequest(
                        f"{self._path}, line {line}: the file is not UTF-8 ({error})"
                    ) from error
                except json.JSONDecodeError as error:
                    raise InvalidRequest(
                        f"{self._path}, line {line}: expected JSON: {error.msg}"
                    ) from error
                except ValueError as error:
                    raise InvalidRequest(
                        f"{self._path}, line {line}: not readable: {error}"
                    ) from error
                except RecursionError as error:
                    raise InvalidRequest(
                        f"{self._path}, line {line}: expected fewer levels of brackets"
                    ) from error
                yield line, len(text), block

    def _node(self, block: Mapping[str, Any]) -> Any:
        try:
            return {
                "id": block.get("node_id", ""),
                "type": self._type("node", block.get("node_type", "")),
                "weight": block.get("node_weight", ""),
                "features": self._features("node", block),
            }
        except BadRowError as error:
            return error

    def _edges(self, block: Mapping[str, Any]) -> Iterator[Any]:
        """Yield each neighbor as an edge, with the features of the matching ``edge``.

        If there are no neighbors, each ``edge`` is yielded.
        """
        node, weights = block.get("node_id", ""), {}
        neighbors_by_type = block.get("neighbor") or {}
        for kind, neighbors in (
            neighbors_by_type.items()
            if isinstance(neighbors_by_type, dict)
            else [("neighbor", neighbors_by_type)]
        ):
            if not isinstance(neighbors, dict):
                yield BadRowError(
                    "neighbor",
                    neighbors,
                    "expected an object of neighbors and weights for each edge type",
                )
                continue
            for key, weight in neighbors.items():
                weights[kind, int(key) if is_number(key) else key] = weight
        edge_objects = block.get("edge") or []
        if not isinstance(edge_objects, list):
            yield BadRowError("edge", edge_objects, "expected a list")
            edge_objects = []
        has_no_neighbors = not weights
        for edge in edge_objects:
            yield self._edge(edge, node, None if has_no_neighbors else weights)
        for (kind, dst), weight in weights.items():
            yield self._checked_edge(
                {
                    "edge_type": int(kind) if is_number(kind) else kind,
                    "dst_id": dst,
                    "weight": weight,
                },
                node,
            )

    def _edge(self, edge: Any, node: Any, weights: dict[tuple[str, Any], Any] | None) -> Any:
        """Return the row of an ``edge``, and remove it from ``weights``.

        ``weights`` holds the neighbors that still wait for their ``edge``.
        """
        if not isinstance(edge, dict):
            return BadRowError("edge", edge, "expected an object")
        if edge.get("src_id", node) != node:
            return BadRowError(
                "src_id",
                edge["src_id"],
                f"expected {node}: an edge stands in the block of its source",
            )
        if weights is not None:
            key = str(edge.get("edge_type", "")), edge.get("dst_id", "")
            try:
                weight = weights.pop(key, None)
            except TypeError:
                return BadRowError("dst_id", edge.get("dst_id"), "an id is an integer")
            if weight is None:
                return BadRowError(
                    "dst_id",
                    edge.get("dst_id", ""),
                    (f"expected a neighbor of node {node} by edges of type {key[0]}, each once"),
                )
            if weight != edge.get("weight", ""):
                return BadRowError(
                    "weight",
                    edge.get("weight", ""),
                    f"expected {weight}, as among the neighbors of node {node}",
                )
        return self._checked_edge(edge, node)

    def _checked_edge(self, edge: Mapping[str, Any], node: Any) -> Any:
        try:
            return {
                "src": node,
                "dst": edge.get("dst_id", ""),
                "type": self._type("edge", edge.get("edge_type", "")),
                "weight": edge.get("weight", ""),
                "features": self._features("edge", edge),
            }
        except BadRowError as error:
            return error

    def _type(self, element: str, type_id: Any) -> Any:
        if type(type_id) is not int or type_id < 0:
            raise BadRowError("type", type_id, "expected an integer, 0 or more")
        type_count = self._limits.get(f"{element}_type_num", type_id + 1)
        if type_id >= type_count:
            raise BadRowError(
                "type",
                type_id,
                f"expected 0 to {type_count - 1}, the {element} types of the meta file",
            )
        return type_id

    def _features(self, element: str, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        features = []
        for kind, type_name in FEATURE_KINDS.items():
            column = f"{kind}_feature"
            values = row.get(column) or {}
            if not isinstance(values, dict):
                raise BadRowError(column, values, "expected an object of features by their numbers")
            for number, value in values.items():
                feature_count = self._limits.get(f"{element}_{column}_num")
                if not is_number(number) or (
                    feature_count is not None and int(number) >= feature_count
                ):
                    raise BadRowError(
                        column,
                        number,
                        "expected the number of a feature"
                        + (
                            ""
                            if feature_count is None
                            else f", below the {feature_count} of the meta"
                        ),
                    )
                features.append(
                    {"name": f"{kind}_{int(number)}", "type": type_name, "value": value}
                )
        return features


def is_number(text: str) -> bool:
    """Return True for decimal digits, few enough to be an id."""
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


def _read_meta(path: Path) -> dict[str, int]:
    """Read the numbers of types and features; raise InvalidRequest if one is missing."""
    required = [f"{element}_type_num" for element in ("node", "edge")]
    required += [
        f"{element}_{kind}_feature_num" for element in ("node", "edge") for kind in FEATURE_KINDS
    ]
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=unique_object)
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidRequest(f"{path}: expected a meta file of Euler 1.x ({error})") from error
    missing = [
        name
        for name in required
        if not isinstance(document, dict)
        or type(document.get(name)) is not int
        or document[name] < 0
    ]
    if missing:
        raise InvalidRequest(
            f"{path}: expected a meta file of Euler 1.x, with a number of {missing[0]}"
        )
    return {name: document[name] for name in required}
