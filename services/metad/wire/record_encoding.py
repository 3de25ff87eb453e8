"""Encoding of records as stored bytes: serialized messages, and JSON for jobs."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, Message

from asterism_model.indexes import Index
from asterism_proto.errors import Corrupt, InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.model.access import AccessLimits, ApiKey, EndedSession, RoleGrant
from metad.model.catalog import Chunk, LoadRecord, Manifest, Pin, Space
from metad.model.hosts import Host
from metad.model.ids import HostId, JobId, SpaceId, TaskId
from metad.model.jobs import Job, JobState, Task
from metad.model.task_outcomes import TaskOutcome
from metad.wire import access, catalog, hosts, jobs

M = TypeVar("M", bound=Message)
_REMEDY = "restore the catalog from a snapshot"


def encode_number(number: int) -> bytes:
    """Encode a counter."""
    return b"%d" % number


def decode_number(value: bytes | None, *, default: int = 0) -> int:
    """Decode a counter; ``default`` if it was never written."""
    return default if value is None else int(value)


def encode_space(space: Space) -> bytes:
    """Encode a space."""
    return _serialize(catalog.space_to_proto(space))


def decode_space(value: bytes) -> Space:
    """Decode a space."""
    return catalog.space_from_proto(_parse(common_pb.Space(), value))


def encode_load(load: LoadRecord) -> bytes:
    """Encode a load without its chunks."""
    return _serialize(catalog.load_to_proto(load))


def decode_load(value: bytes) -> LoadRecord:
    """Decode a load without its chunks."""
    return catalog.load_from_proto(_parse(metad_pb.Load(), value))


def encode_chunk(chunk: Chunk) -> bytes:
    """Encode a chunk."""
    return _serialize(catalog.chunk_to_proto(chunk))


def decode_chunk(value: bytes) -> Chunk:
    """Decode a chunk."""
    return catalog.chunk_from_proto(_parse(metad_pb.Chunk(), value))


def encode_manifest(manifest: Manifest) -> bytes:
    """Encode a manifest."""
    return _serialize(catalog.manifest_to_proto(manifest))


def decode_manifest(value: bytes) -> Manifest:
    """Decode a manifest; Corrupt if its digest does not match its content."""
    manifest = catalog.manifest_from_proto(_parse(common_pb.Manifest(), value))
    if catalog.with_digest(manifest).digest != manifest.digest:
        raise Corrupt(
            f"the stored manifest of space {manifest.space_id}, version {manifest.version} does "
            f"not match its digest; {_REMEDY}"
        )
    return manifest


def encode_pin(pin: Pin) -> bytes:
    """Encode a pin."""
    return _serialize(catalog.pin_to_proto(pin))


def decode_pin(value: bytes) -> Pin:
    """Decode a pin."""
    return catalog.pin_from_proto(_parse(metad_pb.Pin(), value))


def encode_api_key(key: ApiKey) -> bytes:
    """Encode an API key with the hash of its secret."""
    return _serialize(access.api_key_to_proto(key, with_hash=True))


def decode_api_key(value: bytes) -> ApiKey:
    """Decode an API key."""
    return access.api_key_from_proto(_parse(metad_pb.ApiKey(), value))


def encode_grant(grant: RoleGrant) -> bytes:
    """Encode a role grant."""
    return _serialize(access.grant_to_proto(grant))


def decode_grant(value: bytes) -> RoleGrant:
    """Decode a role grant."""
    try:
        return access.grant_from_proto(_parse(metad_pb.RoleGrant(), value))
    except InvalidRequest as error:
        raise Corrupt(f"a stored RoleGrant cannot be read ({error}); {_REMEDY}") from error


def encode_access_limits(limits: AccessLimits) -> bytes:
    """Encode access limits."""
    return _serialize(access.limits_to_proto(limits))


def decode_access_limits(value: bytes) -> AccessLimits:
    """Decode access limits."""
    return access.limits_from_proto(_parse(metad_pb.AccessLimits(), value))


def encode_ended_session(session: EndedSession) -> bytes:
    """Encode an ended session."""
    return _serialize(access.ended_session_to_proto(session))


def decode_ended_session(value: bytes) -> EndedSession:
    """Decode an ended session."""
    return access.ended_session_from_proto(_parse(metad_pb.EndedSession(), value))


def encode_host(host: Host) -> bytes:
    """Encode a host."""
    return _serialize(hosts.host_to_proto(host))


def decode_host(value: bytes) -> Host:
    """Decode a host."""
    return hosts.host_from_proto(_parse(metad_pb.Host(), value))


def encode_outcome(outcome: TaskOutcome) -> bytes:
    """Encode a task's outcome."""
    return _serialize(jobs.outcome_to_proto(outcome))


def decode_outcome(value: bytes) -> TaskOutcome:
    """Decode a task's outcome."""
    return jobs.outcome_from_proto(_parse(common_pb.TaskResult(), value))


def encode_job(job: Job) -> bytes:
    """Encode a job with its tasks, without outcomes, which have keys of their own."""
    data = asdict(replace(job, tasks=tuple(replace(task, outcome=None) for task in job.tasks)))
    data["cut"] = data.pop("watermark")  # name of the field on disk
    for task in data["tasks"]:
        task["result"] = task.pop("outcome")  # name of the field on disk; always null
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), default=_encode_state)
    return text.encode()


def _encode_state(value: object) -> str:
    if isinstance(value, JobState):
        return value.name
    raise TypeError(f"{value!r} cannot be stored in a job")


def decode_job(value: bytes) -> Job:
    """Decode a job with its tasks, without outcomes."""
    try:
        data = json.loads(value)
        data["watermark"] = data.pop("cut")
        tasks = tuple(_decode_task({**task}) for task in data["tasks"])
        return Job(
            **{
                **data,
                "job_id": JobId(data["job_id"]),
                "space_id": SpaceId(data["space_id"]),
                "paired": tuple(data["paired"]),
                "options": tuple((key, value) for key, value in data.get("options", ())),
                "index": Index(**data["index"]) if data.get("index") else None,
                "indexes": tuple(Index(**index) for index in data.get("indexes", ())),
                "declared": tuple(Index(**index) for index in data.get("declared", ())),
                "tasks": tasks,
                "state": JobState[data["state"]],
                "ending": JobState[data["ending"]] if data["ending"] else None,
            }
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(
            f"a stored job cannot be read ({error}): {value[:200]!r}; {_REMEDY}"
        ) from error


def _decode_task(data: dict[str, Any]) -> Task:
    data.pop("result", None)  # always null: a task's outcome has a key of its own
    return Task(
        **{
            **data,
            "task_id": TaskId(data["task_id"]),
            "host": HostId(data["host"]),
            "parts": tuple(data["parts"]),
            "state": JobState[data["state"]],
            "causes": tuple(data["causes"]),
        }
    )


def _serialize(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _parse(message: M, value: bytes) -> M:
    try:
        message.ParseFromString(value)
    except DecodeError as error:
        raise Corrupt(
            f"a stored {message.DESCRIPTOR.name} cannot be read ({error}); {_REMEDY}"
        ) from error
    return message
