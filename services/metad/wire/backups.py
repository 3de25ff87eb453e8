"""Records of spaces as messages, and messages as our records: what a backup keeps of the
catalog.
"""

from __future__ import annotations

from asterism_proto.errors import Corrupt, InvalidRequest
from asterism_proto.v1 import metad_pb2 as mpb
from metad.catalog.restores import SpaceRecord
from metad.model.catalog import LoadState
from metad.wire import catalog


def space_record_to_proto(record: SpaceRecord) -> mpb.SpaceRecord:
    """A record as it travels, and as a backup keeps it: of versions that were restored before, as
    they were first.
    """
    return mpb.SpaceRecord(
        space=catalog.space_to_proto(record.space),
        manifest=catalog.manifest_to_proto(catalog.original_manifest(record.manifest)),
        loads=[catalog.load_to_proto(load, chunks) for load, chunks in record.loads],
        last_commit=record.last_commit,
        next_edge_ids=record.next_edge_ids,
    )


def space_record_from_proto(message: mpb.SpaceRecord) -> SpaceRecord:
    """A record that travelled; refused where it is not what was sealed, or does not fit
    together.
    """
    manifest = catalog.manifest_from_proto(message.manifest)
    if catalog.with_digest(manifest).digest != manifest.digest:
        raise Corrupt(
            f"the record's manifest of version {manifest.version} is not what was published: "
            "its digest differs"
        )
    space = catalog.space_from_proto(message.space)
    try:
        loads = tuple(
            (
                catalog.load_from_proto(load),
                tuple(catalog.chunk_from_proto(chunk) for chunk in load.chunks),
            )
            for load in message.loads
        )
    except ValueError as error:
        raise InvalidRequest(f"the record has a load of no state that there is: {error}") from error
    commits = [load.commit for load, _ in loads]
    if commits != sorted(set(commits)) or any(
        load.state is not LoadState.COMMITTED for load, _ in loads
    ):
        raise InvalidRequest("the record's loads are not committed ones in commit order")
    if commits and not 0 < commits[0] <= commits[-1] <= manifest.cut:
        raise InvalidRequest(
            f"the record's loads have commit numbers up to {commits[-1]}, its version shows "
            f"those up to {manifest.cut}"
        )
    if manifest.cut > message.last_commit:
        raise InvalidRequest(
            f"the record's version shows commit {manifest.cut}, its last commit is "
            f"{message.last_commit}"
        )
    if (
        len(message.next_edge_ids) != len(space.schema.edge_types)
        or min(message.next_edge_ids, default=0) < 0
    ):
        raise InvalidRequest(
            f"the record has {len(message.next_edge_ids)} next edge ids for "
            f"{len(space.schema.edge_types)} edge types"
        )
    return SpaceRecord(
        space=space,
        manifest=manifest,
        loads=loads,
        last_commit=message.last_commit,
        next_edge_ids=tuple(message.next_edge_ids),
    )
