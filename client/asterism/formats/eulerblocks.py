"""JSON of Euler 1.x, a block for each node on a line of its own, as the rows that JSON of 2.0 has."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asterism.formats.eulermeta import EulerMeta
from asterism.formats.eulerrows import Bad
from asterism.formats.jsonarrays import MAX_ELEMENT, Element
from asterism_proto.errors import InvalidRequest

KINDS = {"uint64": "sparse", "float": "dense", "binary": "binary"}
"""What 2.0 calls the kinds of features."""
COLUMNS = {
    "nodes": {"id": "node_id", "type": "node_type", "weight": "node_weight"},
    "edges": {"src": "src_id", "dst": "dst_id", "type": "edge_type"},
}
"""What blocks call the columns of 2.0."""
_METAS = ("{}_meta.json", "meta.json", "meta")


class Blocks:
    """The nodes and edges of a file of blocks.

    Parameters
    ----------
    path : Path
        The file. The meta beside it (``NAME_meta.json``, ``meta.json`` or ``meta``) says how many types and features there are.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        beside = (path.with_name(name.format(path.stem.removesuffix("_data"))) for name in _METAS)
        self.meta_path = next((file for file in beside if file.is_file()), None)
        self._most: Mapping[str, int] = {} if self.meta_path is None else _read_meta(self.meta_path)

    def meta(self) -> EulerMeta | None:
        """The types by their numbers; None where no meta says how many there are."""
        if not self._most:
            return None
        types = {what: tuple(map(str, range(self._most[f"{what}_type_num"]))) for what in ("node", "edge")}
        return EulerMeta(node_types=types["node"], edge_types=types["edge"], node_dimensions={}, edge_dimensions={})

    def holds(self, array: str) -> bool:
        """Blocks have both."""
        return True

    def all(self) -> Iterator[Element]:
        """The nodes, then the edges."""
        yield from self.of("nodes")
        yield from self.of("edges")

    def of(self, array: str) -> Iterator[Element]:
        """The nodes, or the edges, each with the line of its block; a value that is `Bad` is no row."""
        for line, nbytes, block in self._blocks():
            if not isinstance(block, dict):
                if array == "nodes":
                    yield Element(array=array, line=line, value=Bad("", block, "expected an object"), nbytes=nbytes)
            elif array == "nodes":
                # The file is read once for each: half of its bytes count for one.
                yield Element(array=array, line=line, value=self._node(block), nbytes=nbytes // 2)
            else:
                rest = nbytes - nbytes // 2
                for row in self._edges(block):
                    yield Element(array=array, line=line, value=row, nbytes=rest)
                    rest = 0

    def _blocks(self) -> Iterator[tuple[int, int, Any]]:
        """Line, bytes and value of each block."""
        with self._path.open("rb") as file:
            line = 0
            while text := file.readline(MAX_ELEMENT + 1):
                line += 1
                if len(text) > MAX_ELEMENT:
                    raise InvalidRequest(f"{self._path}, line {line}: what begins here has no end within {MAX_ELEMENT:,} letters")
                if text.isspace():
                    continue
                try:
                    block = json.loads(text, object_pairs_hook=_once)
                except UnicodeDecodeError as error:
                    raise InvalidRequest(f"{self._path}, line {line}: the file is not UTF-8 ({error})") from error
                except json.JSONDecodeError as error:
                    raise InvalidRequest(f"{self._path}, line {line}: this is no JSON: {error.msg}") from error
                except ValueError as error:
                    raise InvalidRequest(f"{self._path}, line {line}: this can not be read: {error}") from error
                except RecursionError as error:
                    raise InvalidRequest(f"{self._path}, line {line}: brackets are nested too deep") from error
                yield line, len(text), block

    def _node(self, block: Mapping[str, Any]) -> Any:
        try:
            return {
                "id": block.get("node_id", ""),
                "type": self._type("node", block.get("node_type", "")),
                "weight": block.get("node_weight", ""),
                "features": self._features("node", block),
            }
        except Bad as error:
            return error

    def _edges(self, block: Mapping[str, Any]) -> Iterator[Any]:
        """Each neighbor as an edge, with the features of the ``edge`` that leads to it; or, where there are no neighbors, each ``edge``."""
        node, weights = block.get("node_id", ""), {}
        said = block.get("neighbor") or {}
        for kind, near in said.items() if isinstance(said, dict) else [("neighbor", said)]:
            if not isinstance(near, dict):
                yield Bad("neighbor", near, "expected an object of neighbors and weights for each edge type")
                continue
            for key, weight in near.items():
                weights[kind, int(key) if key.isdecimal() else key] = weight
        listed = block.get("edge") or []
        if not isinstance(listed, list):
            yield Bad("edge", listed, "expected a list")
            listed = []
        alone = not weights
        for edge in listed:
            yield self._edge(edge, node, None if alone else weights)
        for (kind, dst), weight in weights.items():
            yield self._guarded({"edge_type": int(kind) if kind.isdecimal() else kind, "dst_id": dst, "weight": weight}, node)

    def _edge(self, edge: Any, node: Any, weights: dict[tuple[str, Any], Any] | None) -> Any:
        """An ``edge``, which then is no neighbor any more that waits for one."""
        if not isinstance(edge, dict):
            return Bad("edge", edge, "expected an object")
        if edge.get("src_id", node) != node:
            return Bad("src_id", edge["src_id"], f"expected {node}: an edge stands in the block of its source")
        if weights is not None:
            key = str(edge.get("edge_type", "")), edge.get("dst_id", "")
            try:
                weight = weights.pop(key, None)
            except TypeError:
                return Bad("dst_id", edge.get("dst_id"), "an id is a whole number")
            if weight is None:
                return Bad("dst_id", edge.get("dst_id", ""), f"it is not among the neighbors of node {node} by edges of type {key[0]}, or twice")
            if weight != edge.get("weight", ""):
                return Bad("weight", edge.get("weight", ""), f"the same edge weighs {weight} among the neighbors of node {node}")
        return self._guarded(edge, node)

    def _guarded(self, edge: Mapping[str, Any], node: Any) -> Any:
        try:
            return {
                "src": node,
                "dst": edge.get("dst_id", ""),
                "type": self._type("edge", edge.get("edge_type", "")),
                "weight": edge.get("weight", ""),
                "features": self._features("edge", edge),
            }
        except Bad as error:
            return error

    def _type(self, what: str, number: Any) -> Any:
        if type(number) is not int or number < 0:
            raise Bad("type", number, "a type is a whole number, not negative")
        most = self._most.get(f"{what}_type_num", number + 1)
        if number >= most:
            raise Bad("type", number, f"the meta beside the file has {most} {what} types")
        return number

    def _features(self, what: str, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        found = []
        for kind, called in KINDS.items():
            column = f"{kind}_feature"
            said = row.get(column) or {}
            if not isinstance(said, dict):
                raise Bad(column, said, "expected an object of features by their numbers")
            for number, value in said.items():
                most = self._most.get(f"{what}_{column}_num")
                if not number.isdecimal() or (most is not None and int(number) >= most):
                    raise Bad(column, number, "expected the number of a feature" + ("" if most is None else f", below the {most} of the meta"))
                found.append({"name": f"{kind}_{int(number)}", "type": called, "value": value})
        return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; ValueError where a name is there twice, for one of the two would be lost."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} is there twice")
    return found


def _read_meta(path: Path) -> dict[str, int]:
    """How many types and features there are; InvalidRequest where it does not say."""
    wanted = [f"{what}_type_num" for what in ("node", "edge")]
    wanted += [f"{what}_{kind}_feature_num" for what in ("node", "edge") for kind in KINDS]
    try:
        told = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"{path}: no meta of Euler 1.x: {error}") from error
    missing = [name for name in wanted if not isinstance(told, dict) or type(told.get(name)) is not int or told[name] < 0]
    if missing:
        raise InvalidRequest(f"{path}: no meta of Euler 1.x: expected a number of {missing[0]}")
    return {name: told[name] for name in wanted}
