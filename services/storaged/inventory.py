"""The contents of a storaged's folder, reported to a metad whose catalog may not contain them."""

from __future__ import annotations

from pathlib import Path

from asterism_proto.errors import AsterismError
from asterism_proto.schema import NodeType, Schema
from asterism_proto.v1 import metad_pb2 as meta
from storaged.folders import Folders, space_label, used_bytes
from storaged.holdings import Holdings
from storaged.store.graph import GraphStore

_ANY = Schema(node_types=(NodeType(name="any"),))
"""A schema without types: finding the loads with blocks needs none."""


def highest_ids(folders: Folders, holdings: Holdings) -> meta.HighestIds:
    """Return the highest identifiers in a data folder; of loads, those seen since the start."""
    spaces, jobs = [0], [0]
    for folder in _numbered(folders.spaces):
        spaces.append(int(folder.name))
        for kind in (folders.builds(int(folder.name)), folders.checkpoints(int(folder.name))):
            jobs += [int(job.name) for job in _numbered(kind)]
    return meta.HighestIds(space_id=max(spaces), job_id=max(jobs), load_id=holdings.highest_load())


def inventory_of(folders: Folders, holdings: Holdings) -> list[meta.InventorySpace]:
    """Return the contents of a data folder, by space."""
    open_spaces = {space.space_id: space for space in holdings.spaces()}
    found = []
    for folder in _numbered(folders.spaces):
        space_id = int(folder.name)
        space = open_spaces.get(space_id)
        published = {want.job_id: want.version for want in space.versions} if space is not None else {}
        loads = _loads(folders, holdings, space_id)
        holdings.saw_load(max(loads, default=0))
        found.append(
            meta.InventorySpace(
                space_id=space_id,
                name=space.name if space is not None else space_label(folder),
                bytes=used_bytes(folder),
                builds=[
                    meta.InventoryBuild(job_id=int(build.name), version=published.get(int(build.name), 0))
                    for build in _numbered(folders.builds(space_id))
                ],
                checkpoints=[int(path.name) for path in _numbered(folders.checkpoints(space_id))],
                loads=loads,
            )
        )
    return found


def _loads(folders: Folders, holdings: Holdings, space_id: int) -> list[int]:
    try:
        return holdings.store(space_id).loads()
    except AsterismError:
        pass  # not open: it is read without being changed
    if not folders.graph(space_id).exists():
        return []
    try:
        store = GraphStore.open(folders.graph(space_id), _ANY, read_only=True)
    except AsterismError:
        return []
    try:
        return store.loads()
    finally:
        store.close()


def _numbered(folder: Path) -> list[Path]:
    try:
        return sorted((path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    except FileNotFoundError:
        return []
