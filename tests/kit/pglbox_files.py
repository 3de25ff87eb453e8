"""A small graph in PGLBox's format, and its expected content.

It has node files of all types together, a folder of edges for each type, and a configuration.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

USERS = range(1, 31)
ITEMS = range(101, 121)
TAGS = range(201, 206)
BUYS = [(user, 101 + (user * step) % 20, 0.5 + step) for user in USERS for step in (1, 3, 7)]
KNOWS = [(user, user + 1) for user in USERS if user < 30]
HAS = [(item, 201 + item % 5) for item in ITEMS]
SLOTS = {item: [item % 7, *range(item % 4)] for item in ITEMS}
"""Values of slot 11 of items; for users, slot 12 is the id."""

PLAIN: dict[str, Any] = {
    "graph_data_local_path": "data",
    "etype2files": "u2buy2i:u2buy2i,u2u:u2u.txt,i2t:i2t,",
    "ntype2files": "u:node_types,i:node_types,t:node_types",
    "symmetry": True,
    "hadoop_shard": False,
    "num_part": 1000,
    "slots": ["11", "12"],
    "meta_path": "u2buy2i-i2buy2u;i2t-t2i;u2u",
    "walk_len": 4,
    "walk_times": 3,
    "win_size": 2,
    "neg_num": 2,
    "batch_size": 500,
    "infer_batch_size": 8,
    "epochs": 1,
}


def write(folder: Path, **keys: Any) -> Path:
    """Write the files and the configuration; return the configuration's path.

    ``keys`` replace those of `PLAIN`; a key of None is left out.
    """
    data = folder / "data"
    for name in ("node_types", "u2buy2i", "i2t"):
        (data / name).mkdir(parents=True, exist_ok=True)
    users = [f"u\t{user}\t12:{user}\n" for user in USERS]
    items = [
        f"i\t{item}" + "".join(f"\t11:{value}" for value in SLOTS[item]) + "\t99:5\n"
        for item in ITEMS
    ]
    (data / "node_types/part-00000").write_text(
        "".join(users[::2] + items + ["other\t999\n", "\n"])
    )
    (data / "node_types/part-00001").write_text(
        "".join(users[1::2] + [f"t\t{tag}\r\n" for tag in TAGS])
    )
    (data / "node_types/_SUCCESS").write_text("")
    (data / "u2buy2i/edges").write_text(
        "".join(f"{src}\t{dst}\t{weight}\n" for src, dst, weight in BUYS)
    )
    (data / "u2u.txt").write_text("".join(f"{src}\t{dst}\n" for src, dst in KNOWS))
    (data / "i2t/edges").write_text("".join(f"{src}\t{dst} \n" for src, dst in HAS))
    path = folder / "config.yaml"
    path.write_text(
        yaml.safe_dump(
            {key: value for key, value in {**PLAIN, **keys}.items() if value is not None}
        )
    )
    return path


def write_parts(folder: Path, parts: int, *, symmetric: bool = True) -> None:
    """Write the edges of u2buy2i, sharded like PGLBox's tool by source partition.

    If ``symmetric``, edges are also written to the partitions of their destinations.
    """
    target = folder / "data/u2buy2i"
    for old_file in target.iterdir():
        old_file.unlink()
    rows: list[list[str]] = [[] for _ in range(parts)]
    for src, dst, weight in BUYS:
        for part in (src % parts, dst % parts)[: 2 if symmetric and src != dst else 1]:
            rows[part].append(f"{src}\t{dst}\t{weight}\n")
    for part, lines in enumerate(rows):
        (target / f"part-{part:05d}").write_text("".join(lines))
