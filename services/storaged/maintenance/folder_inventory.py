"""Inventory of a data folder, for a metad with a catalog that may not know the contents."""

from __future__ import annotations

from pathlib import Path

from asterism_model.schema import NodeType, Schema
from asterism_proto.errors import AsterismError
from asterism_proto.v1 import metad_pb2 as metad_pb
from storaged.local_spaces import LocalSpaces
from storaged.paths import DataPaths, read_space_label, used_bytes
from storaged.store.block_store import BlockStore

_EMPTY_SCHEMA = Schema(node_types=(NodeType(name="any"),))
"""Schema without types, sufficient to list the loads that have blocks."""


def highest_ids(paths: DataPaths, local_spaces: LocalSpaces) -> metad_pb.HighestIds:
    """Return the highest ids in a data folder; of loads, only those seen since the start."""
    spaces, jobs = [0], [0]
    for folder in _numeric_folders(paths.spaces):
        spaces.append(int(folder.name))
        for kind in (paths.builds(int(folder.name)), paths.checkpoints(int(folder.name))):
            jobs += [int(job.name) for job in _numeric_folders(kind)]
    return metad_pb.HighestIds(
        space_id=max(spaces), job_id=max(jobs), load_id=local_spaces.highest_load()
    )


def collect_inventory(paths: DataPaths, local_spaces: LocalSpaces) -> list[metad_pb.InventorySpace]:
    """Return the contents of a data folder, one entry per space."""
    open_spaces = {space.space_id: space for space in local_spaces.spaces()}
    entries = []
    for folder in _numeric_folders(paths.spaces):
        space_id = int(folder.name)
        space = open_spaces.get(space_id)
        published = (
            {desired.job_id: desired.version for desired in space.versions}
            if space is not None
            else {}
        )
        loads = _loads(paths, local_spaces, space_id)
        local_spaces.note_load(max(loads, default=0))
        entries.append(
            metad_pb.InventorySpace(
                space_id=space_id,
                name=space.name if space is not None else read_space_label(folder),
                bytes=used_bytes(folder),
                builds=[
                    metad_pb.InventoryBuild(
                        job_id=int(build.name), version=published.get(int(build.name), 0)
                    )
                    for build in _numeric_folders(paths.builds(space_id))
                ],
                checkpoints=[
                    int(path.name) for path in _numeric_folders(paths.checkpoints(space_id))
                ],
                loads=loads,
            )
        )
    return entries


def _loads(paths: DataPaths, local_spaces: LocalSpaces, space_id: int) -> list[int]:
    try:
        return local_spaces.store(space_id).loads()
    except AsterismError:
        pass  # The space is not open; read its database without changing it.
    if not paths.graph(space_id).exists():
        return []
    try:
        store = BlockStore.open(paths.graph(space_id), _EMPTY_SCHEMA, read_only=True)
    except AsterismError:
        return []
    try:
        return store.loads()
    finally:
        store.close()


def _numeric_folders(folder: Path) -> list[Path]:
    try:
        return sorted(
            (path for path in folder.iterdir() if path.name.isdigit()),
            key=lambda path: int(path.name),
        )
    except FileNotFoundError:
        return []
