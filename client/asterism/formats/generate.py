"""Generated shop graph of any size: users, items, categories, clicks, buys and follows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from asterism.formats.chunks import Array
from asterism.formats.rmat import rmat
from asterism_proto.errors import InvalidRequest

CHUNK_ROWS = 1_000_000
"""Number of rows per file.
Part of the sampling contract: changing it changes results for a given seed."""
TASTE_DIMENSION, LOOK_DIMENSION = 8, 16
"""Dimensions of the vectors of users and items.
Part of the sampling contract: changing them changes results for a given seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Size and seed of a generated graph, which determine all of its content.

    Users click on items (weighted by frequency), buy some (weighted by amount, with a day), and
    follow each other. Every item is in one category, which determines its look, apart from noise.
    """

    users: int = 20_000
    """Number of users."""
    items: int = 5_000
    """Number of items."""
    categories: int = 40
    """Number of categories."""
    clicks: int = 200_000
    """Number of edges from users to items that they click."""
    buys: int = 40_000
    """Number of edges from users to items that they buy."""
    follows: int = 60_000
    """Number of edges between users."""
    seed: int = 0
    """Seed of all content."""

    def __post_init__(self) -> None:
        for name in ("users", "items", "categories"):
            if not 1 <= getattr(self, name) < 1 << 31:
                raise InvalidRequest(f"{name}={getattr(self, name)}: expected 1 to 2^31 - 1")
        for name in ("clicks", "buys", "follows"):
            if getattr(self, name) < 0:
                raise InvalidRequest(f"{name}={getattr(self, name)}: expected 0 or more")

    @property
    def nodes(self) -> dict[str, int]:
        """Number of nodes of each type."""
        return {"user": self.users, "item": self.items, "category": self.categories}

    @property
    def edges(self) -> dict[str, int]:
        """Number of edges of each type."""
        return {
            "user:clicks:item": self.clicks,
            "user:buys:item": self.buys,
            "user:follows:user": self.follows,
            "item:in:category": self.items,
        }

    def column(self, owner: str, name: str, start: int, stop: int) -> Array:
        """Return rows of a feature, or of ``edges`` with shape (n, 2).

        Parameters
        ----------
        owner : str
            Node type or edge type.
        name : str
            Feature name, or "edges".
        start, stop : int
            Row range of one file: multiples of `CHUNK_ROWS`, or the end.

        Returns
        -------
        ndarray
        """
        tag = list(_COLUMNS).index(f"{owner}/{name}")
        draws = np.random.default_rng((self.seed, tag, start // CHUNK_ROWS))
        return _COLUMNS[f"{owner}/{name}"](self, draws, tag, start, stop - start)


ColumnGenerator = Callable[[Shop, np.random.Generator, int, int, int], Array]


def _log_normal(sigma: float) -> ColumnGenerator:
    return lambda shop, draws, tag, start, n: draws.lognormal(0.0, sigma, n).astype(np.float32)


def _random_edges(users: str, items: str) -> ColumnGenerator:
    return lambda shop, draws, tag, start, n: np.stack(
        rmat(shop.seed, tag, start, n, sources=getattr(shop, users), targets=getattr(shop, items)),
        axis=1,
    )


def _category(shop: Shop, start: int, n: int) -> Array:
    """Return the category of items; the first categories have the most items."""
    draws = np.random.default_rng((shop.seed, 1_000_003, start // CHUNK_ROWS))
    return np.minimum(
        (draws.random(n) ** 2 * shop.categories).astype(np.int64), shop.categories - 1
    )


def _item_look(shop: Shop, draws: np.random.Generator, tag: int, start: int, n: int) -> Array:
    centres = np.random.default_rng((shop.seed, 1_000_004)).normal(
        size=(shop.categories, LOOK_DIMENSION)
    )
    return (
        centres[_category(shop, start, n)] + draws.normal(scale=0.5, size=(n, LOOK_DIMENSION))
    ).astype(np.float32)


_COLUMNS: dict[str, ColumnGenerator] = {
    "user/age": lambda shop, draws, tag, start, n: np.clip(draws.normal(38, 14, n), 16, 99).astype(
        np.int8
    ),
    "user/taste": lambda shop, draws, tag, start, n: draws.normal(size=(n, TASTE_DIMENSION)).astype(
        np.float32
    ),
    "item/weight": _log_normal(1.0),
    "item/price": lambda shop, draws, tag, start, n: np.round(
        draws.lognormal(2.5, 0.8, n), 2
    ).astype(np.float32),
    "item/look": _item_look,
    "item/label": lambda shop, draws, tag, start, n: _category(shop, start, n),
    "user:clicks:item/edges": _random_edges("users", "items"),
    "user:clicks:item/weight": _log_normal(1.0),
    "user:buys:item/edges": _random_edges("users", "items"),
    "user:buys:item/weight": _log_normal(0.7),
    "user:buys:item/day": lambda shop, draws, tag, start, n: draws.integers(0, 365, n).astype(
        np.int32
    ),
    "user:follows:user/edges": _random_edges("users", "users"),
    "item:in:category/edges": lambda shop, draws, tag, start, n: np.stack(
        (np.arange(start, start + n), _category(shop, start, n)), axis=1
    ),
}


def write_dgl(shop: Shop, folder: Path) -> Path:
    """Write the graph in DGL's chunked format, with one file at a time in memory.

    Parameters
    ----------
    shop : Shop
        Graph to write.
    folder : Path
        Output folder. It is created if missing; files in it are overwritten.

    Returns
    -------
    Path
        The file metadata.json. Features named ``weight`` are the weights.
    """
    files = _write(shop, folder)
    counts = {
        owner: [stop - start for start, stop in _spans(rows)]
        for owner, rows in (*shop.nodes.items(), *shop.edges.items())
    }

    def data(owner: str) -> dict[str, Any]:
        return {
            name: {"format": {"name": "numpy"}, "data": file_names}
            for name, file_names in files[owner].items()
            if name != "edges"
        }

    metadata = {
        "graph_name": "shop",
        "node_type": list(shop.nodes),
        "num_nodes_per_chunk": [counts[name] for name in shop.nodes],
        "num_nodes_per_type": list(shop.nodes.values()),
        "edge_type": list(shop.edges),
        "num_edges_per_chunk": [counts[name] for name in shop.edges],
        "num_edges_per_type": list(shop.edges.values()),
        "edges": {
            name: {"format": {"name": "numpy"}, "data": files[name]["edges"]} for name in shop.edges
        },
        "node_data": {name: data(name) for name in shop.nodes if data(name)},
        "edge_data": {name: data(name) for name in shop.edges if data(name)},
    }
    path = folder / "metadata.json"
    path.write_text(json.dumps(metadata, indent=1))
    return path


def write_numpy(shop: Shop, folder: Path, *, parts: int = 8) -> Path:
    """Write the graph as .npy files with a schema file.

    Parameters
    ----------
    shop : Shop
        Graph to write.
    folder : Path
        Output folder. It is created if missing; files in it are overwritten.
    parts : int, default 8
        Number of partitions of the space.

    Returns
    -------
    Path
        The schema file.
    """
    files = _write(shop, folder)

    def features(owner: str) -> dict[str, Any]:
        return {name: None for name in files[owner] if name not in ("edges", "weight")}

    def table_entry(owner: str) -> dict[str, Any]:
        weight = {"weight": "weight"} if "weight" in files[owner] else {}
        return {
            "format": "numpy",
            "files": dict(files[owner]),
            **weight,
            "features": features(owner),
        }

    spec = {
        "space": "shop",
        "parts": parts,
        "nodes": {
            name: table_entry(name) if files[name] else {"count": rows}
            for name, rows in shop.nodes.items()
        },
        "edges": {
            name: {"src": "edges[0]", "dst": "edges[1]", **table_entry(name)} for name in shop.edges
        },
    }
    path = folder / "shop.yaml"
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return path


def _spans(rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, max(rows, 1), CHUNK_ROWS):
        yield start, min(start + CHUNK_ROWS, rows)


def _write(shop: Shop, folder: Path) -> dict[str, dict[str, list[str]]]:
    """Write every column; return the file names by type and column."""
    folder.mkdir(parents=True, exist_ok=True)
    files: dict[str, dict[str, list[str]]] = {owner: {} for owner in (*shop.nodes, *shop.edges)}
    for path in _COLUMNS:
        owner, name = path.split("/")
        rows = shop.nodes[owner] if owner in shop.nodes else shop.edges[owner]
        files[owner][name] = []
        for index, (start, stop) in enumerate(_spans(rows)):
            file = f"{owner.replace(':', '_')}-{name}-{index}.npy"
            np.save(folder / file, shop.column(owner, name, start, stop))
            files[owner][name].append(file)
    return files
