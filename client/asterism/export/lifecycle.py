"""Carrying an export out: from the beginning, or from where one of the same was cut off, to where
it is published.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from asterism.export.context import ExportRun
from asterism.export.execution_options import Execution, check_execution, memory_limit
from asterism.export.graph_source import (
    ScannableGraph,
    pin_version,
    sample_parameters,
    version_digest,
)
from asterism.export.plan import ExportPlan
from asterism.export.publishing import (
    MANIFEST,
    ExportTarget,
    open_working_folder,
    publish,
    remove_previous,
)
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportShape:
    """How many parts there are, and what they hold."""

    parts: int = 1
    trainers: int = 1
    hops: int = 1
    formats: tuple[str, ...] = ()


@contextmanager
def run_resumable(
    graph: ScannableGraph,
    target: ExportTarget,
    layout: ExportPlan,
    parameters: Mapping[str, Any],
    *,
    version: int | None,
    shape: ExportShape,
    execution: Execution,
) -> Iterator[ExportRun | None]:
    """The export until the block ends, and published then; None where one of the same stands
    already.

    Parameters
    ----------
    graph, target, layout
        What is read, at one version that is pinned meanwhile; where it goes; which types and
        columns.
    parameters : mapping
        What was asked for: another export to the same place is not gone on with.
    version, shape, execution
        None: the current one; the parts; who does it.
    """
    check_execution(execution)
    full_parameters = json.loads(
        json.dumps(
            {
                "space": graph.space,
                "sample": sample_parameters(graph),
                **parameters,
                "plan": layout.to_dict(),
            }
        )
    )
    with open_working_folder(
        target,
        full_parameters,
        overwrite=execution.get("overwrite", False),
        resume=execution.get("resume", False),
        scratch=execution.get("scratch"),
    ) as working_folder:
        if working_folder.published:
            yield None
            publish(working_folder, target)
            return
        pinned_version = working_folder.state.get("version", version)
        if version not in (None, pinned_version):
            raise Conflict(
                f"version {version}: the export that was cut off is of version "
                f"{pinned_version}; ask for that one, or do not resume"
            )
        with pin_version(graph, pinned_version, f"export to {target.display_name}") as source:
            pinned_version = (
                int(working_folder.state["version"])
                if working_folder.resumed
                else _first_version(source, layout, pinned_version)
            )
            digest = version_digest(source, pinned_version)
            if not working_folder.resumed:
                working_folder = working_folder.begin(
                    {**full_parameters, "version": pinned_version, "digest": digest}
                )
            elif working_folder.state["digest"] != digest:
                raise Conflict(
                    f"space {graph.space!r} has another version {pinned_version} than when "
                    "the export was cut off; do not resume, or name another place"
                )
            run = ExportRun(
                graph=source,
                plan=layout,
                version=pinned_version,
                parts=shape.parts,
                trainers=shape.trainers,
                hops=shape.hops,
                formats=shape.formats,
                out=working_folder.out,
                address=target.address,
                scratch=working_folder.scratch,
                memory_limit_mib=memory_limit(execution),
                progress=execution.get("progress"),
                parameters=full_parameters,
            )
            run.save()
            remove_previous(run, target)
            yield run
        publish(working_folder, target)


def _first_version(graph: ScannableGraph, layout: ExportPlan, version: int | None) -> int:
    """The one version that is read throughout: that of the first node to be found."""
    for kind in layout.nodes:
        for batch in graph.scan_nodes(kind.name, (), version=version, rows=1):
            return batch.version
    raise InvalidRequest(f"space {graph.space!r} has no nodes to export")


def write_manifest(run: ExportRun, content: Mapping[str, Any]) -> None:
    """Write the manifest, the last file: ``content``, where it is from, and size and digest of
    every other file.
    """

    def write() -> None:
        manifest = {
            "space": run.graph.space,
            "version": run.version,
            "digest": version_digest(run.graph, run.version),
            "sample": sample_parameters(run.graph),
            **content,
            "warnings": [
                warning for facts in run.results.values() for warning in facts["warnings"]
            ],
            "asked": run.parameters,
            "files": {
                path: file_record
                for facts in run.results.values()
                for path, file_record in sorted(facts["files"].items())
            },
        }
        with run.open_output(MANIFEST) as file:
            file.write(json.dumps(manifest, indent=2).encode() + b"\n")

    run.run_step("manifest", write)


def published_manifest(target: ExportTarget) -> dict[str, Any]:
    """The manifest of an export that was published just now."""
    manifest = target.manifest()
    if manifest is None:
        raise Corrupt(f"{target.file_path(MANIFEST)}: it was written just now, and is not there")
    return manifest
