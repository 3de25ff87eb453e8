"""A shop with known columns, and filters on it with their results by NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import asterism
from asterism import Graph
from tests.kit.waiting import HANG_S

USERS, ITEMS, EDGES, LIKES = 150, 400, 6000, 1500
SCHEMA: dict[str, Any] = {
    "parts": 8,
    "direction": "both",
    "nodes": {
        "user": {"features": {"age": "uint8", "home": "bytes"}},
        "item": {
            "weighted": True,
            "features": {
                "price": "float32",
                "stock": "int64",
                "sold": "bool",
                "size": {"dtype": "float64", "shape": [3]},
                "brand": "bytes",
                "tags": {"kind": "ragged", "dtype": "int64"},
            },
            "tables": {"dear": "weight * abs(stock)"},
        },
    },
    "edges": {
        "user:buys:item": {
            "weighted": True,
            "features": {"rating": "int32", "paid": "float64"},
            "tables": {"rated": "1 + rating"},
        },
        "item:like:item": {"features": {"rating": "int32"}},
    },
}
BRANDS = ("a", "b", "", "it's", "ü")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Every column of the shop, by row, as input for NumPy."""

    user: dict[str, np.ndarray]
    item: dict[str, np.ndarray]
    buys: dict[str, np.ndarray]
    like: dict[str, np.ndarray]


def columns() -> Columns:
    """Return the columns; the row of an edge is its id."""
    rng = np.random.default_rng(12)
    user_ids = np.sort(rng.choice(10**6, USERS, replace=False))  # sparse ids
    item = {
        "id": np.arange(ITEMS),
        "weight": rng.integers(0, 5, ITEMS).astype(np.float32),
        "price": np.where(rng.random(ITEMS) < 0.1, np.nan, rng.random(ITEMS) * 10).astype(
            np.float32
        ),
        "stock": rng.integers(-3, 4, ITEMS) + np.where(rng.random(ITEMS) < 0.05, 2**53, 0),
        "sold": rng.random(ITEMS) < 0.5,
        "size": rng.normal(size=(ITEMS, 3)),
        "brand": np.array([BRANDS[i] for i in rng.integers(0, len(BRANDS), ITEMS)]),
        "tags": rng.integers(0, 3, ITEMS),  # number of tags
    }
    user = {
        "id": user_ids,
        "weight": np.ones(USERS, np.float32),
        "age": rng.integers(0, 90, USERS).astype(np.uint8),
    }
    user["home"] = np.array([BRANDS[i] for i in rng.integers(0, len(BRANDS), USERS)])
    user_rows, item_rows = rng.integers(0, USERS, EDGES), rng.integers(0, ITEMS, EDGES)
    user_rows[:800] = 3  # one user has many purchases
    buys = {
        "id": np.arange(EDGES),
        "src": user_ids[user_rows],
        "dst": item_rows,
        "weight": rng.integers(0, 4, EDGES).astype(np.float32),
        "rating": rng.integers(0, 6, EDGES).astype(np.int32),
        "paid": rng.random(EDGES) * 100,
    }
    buys |= {f"src.{name}": column[user_rows] for name, column in user.items()} | {
        f"dst.{name}": column[item_rows] for name, column in item.items()
    }
    like = {
        "id": np.arange(LIKES),
        "src": rng.integers(0, ITEMS, LIKES),
        "dst": rng.integers(0, ITEMS, LIKES),
    }
    like |= {
        "weight": np.ones(LIKES, np.float32),
        "rating": rng.integers(0, 6, LIKES).astype(np.int32),
    }
    like |= {
        f"{end}.{name}": column[like[end]]
        for end in ("src", "dst")
        for name, column in item.items()
    }
    return Columns(user=user, item=item, buys=buys, like=like)


def _texts(values: np.ndarray) -> list[bytes]:
    return [str(value).encode() for value in values]


def load(client: asterism.Client, space: str) -> Graph:
    """Load the shop into a new graph space, and build it."""
    client.create_space(space, SCHEMA)
    graph, data = client.graph(space), columns()
    graph.upsert_nodes(
        data.user["id"],
        "user",
        features={"age": data.user["age"], "home": _texts(data.user["home"])},
    )
    tags = np.r_[0, np.cumsum(data.item["tags"])].astype(np.int64)
    features = {name: data.item[name] for name in ("price", "stock", "sold", "size")}
    features |= {"brand": _texts(data.item["brand"]), "tags": (tags, np.arange(tags[-1]))}
    graph.upsert_nodes(data.item["id"], "item", weights=data.item["weight"], features=features)
    for rows in (slice(0, 2500), slice(2500, EDGES)):
        batch = {name: column[rows] for name, column in data.buys.items()}
        edge_features = {"rating": batch["rating"], "paid": batch["paid"]}
        graph.upsert_edges(
            batch["src"], batch["dst"], "buys", weights=batch["weight"], features=edge_features
        )
    graph.upsert_edges(
        data.like["src"], data.like["dst"], "like", features={"rating": data.like["rating"]}
    )
    graph.build(timeout_s=HANG_S)
    return graph


def item_filters(item: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return filters on items, with the mask of matching items."""
    price, stock, brand, size = item["price"], item["stock"], item["brand"], item["size"]
    with np.errstate(all="ignore"):
        return {
            "price > 3": price > 3,
            "not price > 3": ~(price > 3),
            "3 >= price": price <= 3,
            "price != 0.1": price != 0.1,
            "price is null": np.isnan(price),
            "price is not null and price between 2 and 4.5": (price >= 2) & (price <= 4.5),
            "stock in (-3, 0, 2)": np.isin(stock, [-3, 0, 2]),
            "stock not in (-3, 0, 2)": ~np.isin(stock, [-3, 0, 2]),
            "stock > 9007199254740992": stock > 2**53,
            "stock > 9007199254740992.0": stock > float(2**53),
            "sold == true": item["sold"],
            "sold = 0": ~item["sold"],
            "size[2] < size[0]": size[:, 2] < size[:, 0],
            "brand == 'a' or brand = 'ü'": (brand == "a") | (brand == "ü"),
            "brand != 'b'": brand != "b",
            "brand in ('it\\'s', 'b')": np.isin(brand, ["it's", "b"]),
            "brand is null": brand == "",
            "tags is not null": item["tags"] > 0,
            "id between 7 and 90 or id == 399": ((item["id"] >= 7) & (item["id"] <= 90))
            | (item["id"] == 399),
            "weight >= 2": item["weight"] >= 2,
            "weight < stock and (price < 5 or sold == true)": (item["weight"] < stock)
            & ((price < 5) | item["sold"]),
            "type == 'item'": np.ones(ITEMS, np.bool_),
            "true": np.ones(ITEMS, np.bool_),
        }


def purchase_filters(buys: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return filters on purchases, with the mask of matching edges."""
    with np.errstate(all="ignore"):
        return {
            "rating >= 4": buys["rating"] >= 4,
            "weight == 2": buys["weight"] == 2,
            "paid < 20 and rating != 0": (buys["paid"] < 20) & (buys["rating"] != 0),
            "src.age < 30": buys["src.age"] < 30,
            "src.age < 300 and src.home in ('a', '')": np.isin(buys["src.home"], ["a", ""]),
            "dst.price < 5": buys["dst.price"] < 5,
            "dst.brand = 'b' or dst.size[1] > 0": (buys["dst.brand"] == "b")
            | (buys["dst.size"][:, 1] > 0),
            "dst.weight > 1 and src.age > 20 and rating > 1": (buys["dst.weight"] > 1)
            & (buys["src.age"] > 20)
            & (buys["rating"] > 1),
            "id < 3000 and dst in (5, 6, 7, 8, 9, 10)": (buys["id"] < 3000)
            & np.isin(buys["dst"], range(5, 11)),
            "src.id > 500000 or dst.tags is null": (buys["src"] > 500_000)
            | (buys["dst.tags"] == 0),
            "dst.price is null": np.isnan(buys["dst.price"]),
        }
