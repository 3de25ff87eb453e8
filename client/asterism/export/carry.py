"""Carrying an export out: from the beginning, or from where one of the same was cut off, to where it is published."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from asterism.export.execution import Execution, checked, memory_limit
from asterism.export.plan import Plan
from asterism.export.run import Run
from asterism.export.seal import MANIFEST, Target, publish, replace_at, unfinished
from asterism.export.source import Scannable, digest_of, held, sample_of
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How many parts there are, and what they hold."""

    parts: int = 1
    trainers: int = 1
    hops: int = 1
    formats: tuple[str, ...] = ()


@contextmanager
def carried(
    graph: Scannable, target: Target, layout: Plan, words: Mapping[str, Any], *, version: int | None, shape: Shape, how: Execution
) -> Iterator[Run | None]:
    """The export until the block ends, and published then; None where one of the same stands already.

    Parameters
    ----------
    graph, target, layout
        What is read, at one version that is pinned meanwhile; where it goes; which types and columns.
    words : mapping
        What was asked for: another export to the same place is not gone on with.
    version, shape, how
        None: the current one; the parts; who does it.
    """
    checked(how)
    asked = json.loads(json.dumps({"space": graph.space, "sample": sample_of(graph), **words, "plan": layout.to_dict()}))
    with unfinished(target, asked, overwrite=how.get("overwrite", False), resume=how.get("resume", False), scratch=how.get("scratch")) as place:
        if place.published:
            yield None
            publish(place, target)
            return
        pinned = place.state.get("version", version)
        if version not in (None, pinned):
            raise Conflict(f"version {version}: the export that was cut off is of version {pinned}; ask for that one, or do not resume")
        with held(graph, pinned, f"export to {target.shown}") as source:
            pinned = int(place.state["version"]) if place.resumed else _pin(source, layout, pinned)
            digest = digest_of(source, pinned)
            if not place.resumed:
                place = place.begin({**asked, "version": pinned, "digest": digest})
            elif place.state["digest"] != digest:
                raise Conflict(
                    f"space {graph.space!r} has another version {pinned} than when the export was cut off; do not resume, or name another place"
                )
            run = Run(
                graph=source,
                plan=layout,
                version=pinned,
                parts=shape.parts,
                trainers=shape.trainers,
                hops=shape.hops,
                formats=shape.formats,
                out=place.out,
                address=target.address,
                scratch=place.scratch,
                memory_limit_mib=memory_limit(how),
                progress=how.get("progress"),
                asked=asked,
            )
            run.save()
            replace_at(run, target)
            yield run
        publish(place, target)


def _pin(graph: Scannable, layout: Plan, version: int | None) -> int:
    """The one version that is read throughout: that of the first node to be found."""
    for kind in layout.nodes:
        for batch in graph.scan_nodes(kind.name, (), version=version, rows=1):
            return batch.version
    raise InvalidRequest(f"space {graph.space!r} has no nodes to export")


def seal(run: Run, content: Mapping[str, Any]) -> None:
    """Write the manifest, the last file: ``content``, where it is from, and size and digest of every other file."""

    def write() -> None:
        whole = {
            "space": run.graph.space,
            "version": run.version,
            "digest": digest_of(run.graph, run.version),
            "sample": sample_of(run.graph),
            **content,
            "warnings": [warning for facts in run.done.values() for warning in facts["warnings"]],
            "asked": run.asked,
            "files": {path: told for facts in run.done.values() for path, told in sorted(facts["files"].items())},
        }
        with run.writing(MANIFEST) as file:
            file.write(json.dumps(whole, indent=2).encode() + b"\n")

    run.step("manifest", write)


def manifest_of(target: Target) -> dict[str, Any]:
    """The manifest of an export that was published just now."""
    manifest = target.manifest()
    if manifest is None:
        raise Corrupt(f"{target.named(MANIFEST)}: it was written just now, and is not there")
    return manifest
