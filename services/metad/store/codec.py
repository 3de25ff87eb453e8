"""Our records as the store's bytes: messages of the wire, serialised deterministically; jobs, which know more, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from asterism_proto.errors import Corrupt
from asterism_proto.indexes import Index
from asterism_proto.v1 import common_pb2 as pb
from asterism_proto.v1 import metad_pb2 as mpb
from metad import wire, wire_jobs
from metad.catalog.model import Chunk, Load, Manifest, Pin, Space
from metad.cluster import Host
from metad.ids import HostId, JobId, SpaceId, TaskId
from metad.jobs.model import Job, State, Task
from metad.totals import Result

M = TypeVar("M", bound=Message)
_REMEDY = "restore the catalog from a snapshot"


def number_to(number: int) -> bytes:
    """A counter."""
    return b"%d" % number


def number_from(value: bytes | None, *, default: int = 0) -> int:
    """A counter; ``default`` where it was never written."""
    return default if value is None else int(value)


def space_to(space: Space) -> bytes:
    """A space."""
    return _bytes(wire.space_to(space))


def space_from(value: bytes) -> Space:
    """A space."""
    return wire.space_of(_read(pb.Space(), value))


def load_to(load: Load) -> bytes:
    """A load without its chunks."""
    return _bytes(wire.load_to(load))


def load_from(value: bytes) -> Load:
    """A load without its chunks."""
    return wire.load_of(_read(mpb.Load(), value))


def chunk_to(chunk: Chunk) -> bytes:
    """A chunk."""
    return _bytes(wire.chunk_to(chunk))


def chunk_from(value: bytes) -> Chunk:
    """A chunk."""
    return wire.chunk_of(_read(mpb.Chunk(), value))


def manifest_to(manifest: Manifest) -> bytes:
    """A manifest."""
    return _bytes(wire.manifest_to(manifest))


def manifest_from(value: bytes) -> Manifest:
    """A manifest; Corrupt where its digest is not that of its content."""
    manifest = wire.manifest_of(_read(pb.Manifest(), value))
    if wire.sealed(manifest).digest != manifest.digest:
        raise Corrupt(
            f"the manifest of space {manifest.space_id}, version {manifest.version} is not what was published: its digest differs; {_REMEDY}"
        )
    return manifest


def pin_to(pin: Pin) -> bytes:
    """A pin."""
    return _bytes(wire.pin_to(pin))


def pin_from(value: bytes) -> Pin:
    """A pin."""
    return wire.pin_of(_read(mpb.Pin(), value))


def host_to(host: Host) -> bytes:
    """A host."""
    return _bytes(wire.host_to(host))


def host_from(value: bytes) -> Host:
    """A host."""
    return wire.host_of(_read(mpb.Host(), value))


def result_to(result: Result) -> bytes:
    """A task's result."""
    return _bytes(wire_jobs.result_to(result))


def result_from(value: bytes) -> Result:
    """A task's result."""
    return wire_jobs.result_of(_read(pb.TaskResult(), value))


def job_to(job: Job) -> bytes:
    """A job with its tasks, less their results, which have keys of their own."""
    bare = replace(job, tasks=tuple(replace(task, result=None) for task in job.tasks))
    return json.dumps(asdict(bare), sort_keys=True, separators=(",", ":"), default=_state_to).encode()


def _state_to(value: object) -> str:
    if isinstance(value, State):
        return value.name
    raise TypeError(f"{value!r} has no place in a job")


def job_from(value: bytes) -> Job:
    """A job with its tasks, less their results."""
    try:
        data = json.loads(value)
        tasks = tuple(
            Task(
                **{
                    **task,
                    "task_id": TaskId(task["task_id"]),
                    "host": HostId(task["host"]),
                    "parts": tuple(task["parts"]),
                    "state": State[task["state"]],
                    "causes": tuple(task["causes"]),
                }
            )
            for task in data["tasks"]
        )
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
                "state": State[data["state"]],
                "ending": State[data["ending"]] if data["ending"] else None,
            }
        )
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"a stored job cannot be read ({error}): {value[:200]!r}; {_REMEDY}") from error


def _bytes(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def _read(message: M, value: bytes) -> M:
    try:
        message.ParseFromString(value)
    except DecodeError as error:
        raise Corrupt(f"a stored {message.DESCRIPTOR.name} cannot be read ({error}); {_REMEDY}") from error
    return message
