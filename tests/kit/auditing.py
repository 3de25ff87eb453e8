"""Audits of what a build left, whole or altered."""

from __future__ import annotations

import hashlib
import io
import json
import zlib

import numpy as np

from asterism_proto.schema import Schema
from storaged.build.progress import Progress
from storaged.reread.audit import audit
from storaged.reread.task import Task
from tests.kit.building import Built
from tests.kit.waiting import HANG_S


def audited(made: Built, schema: Schema, images: dict[int, str]) -> None:
    """Audit what a build left; raises what that finds."""
    task = Task(
        kind="audit",
        space="s",
        space_id=1,
        job_id=1,
        host="h",
        schema=schema,
        parts=tuple(images),
        version=1,
        cut=1,
        digest="",
        images=images,
        totals=tuple(total for result in made.results for total in result.totals),
        build=made.output,
        output="",
        address="",
        remote_timeout_s=HANG_S,
        options={},
    )
    audit(task, Progress(io.StringIO()))


def altered(made: Built, name: str, place: int, value: float) -> str:
    """Write one value of a file of part 1 anew, as if it had been sealed so; gives the image's digest."""
    folder = made.output / "parts/p00001"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    content = np.fromfile(folder / f"{name}.bin", manifest["files"][name]["dtype"])
    content[place] = value
    (folder / f"{name}.bin").write_bytes(content.tobytes())
    manifest["files"][name]["crc32"] = [zlib.crc32(content.tobytes()[low : low + (1 << 20)]) for low in range(0, content.nbytes, 1 << 20)]
    raw = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    (folder / "manifest.json").write_bytes(raw)
    return hashlib.sha256(raw).hexdigest()
