"""Audits of the images of a build, intact or altered."""

from __future__ import annotations

import hashlib
import io
import json
import zlib

import numpy as np

from asterism_model.schema import Schema
from storaged.build.progress import ProgressReporter
from storaged.version_tasks.audit import audit
from storaged.version_tasks.version_task import VersionTask
from tests.kit.building import BuildResult
from tests.kit.waiting import HANG_S


def audit_build(built_images: BuildResult, schema: Schema, images: dict[int, str]) -> None:
    """Audit the images of a build; raise what the audit finds."""
    task = VersionTask(
        kind="audit",
        space="s",
        space_id=1,
        job_id=1,
        host="h",
        schema=schema,
        parts=tuple(images),
        version=1,
        watermark=1,
        digest="",
        images=images,
        totals=tuple(total for result in built_images.results for total in result.totals),
        build=built_images.output,
        output="",
        address="",
        remote_timeout_s=HANG_S,
        options={},
    )
    audit(task, ProgressReporter(io.StringIO()))


def alter_value(built_images: BuildResult, name: str, index: int, value: float) -> str:
    """Overwrite and reseal one value of a file of partition 1; return the image's digest."""
    folder = built_images.output / "parts/p00001"
    manifest = json.loads((folder / "manifest.json").read_bytes())
    content = np.fromfile(folder / f"{name}.bin", manifest["files"][name]["dtype"])
    content[index] = value
    (folder / f"{name}.bin").write_bytes(content.tobytes())
    manifest["files"][name]["crc32"] = [
        zlib.crc32(content.tobytes()[low : low + (1 << 20)])
        for low in range(0, content.nbytes, 1 << 20)
    ]
    manifest_bytes = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    (folder / "manifest.json").write_bytes(manifest_bytes)
    return hashlib.sha256(manifest_bytes).hexdigest()
