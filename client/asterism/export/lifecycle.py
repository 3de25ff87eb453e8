"""Start, resumption and publication of an export.

`run_resumable` locks the working folder of the target, pins a version, yields the `ExportRun` that
the steps share, and publishes the finished files by renaming them. It continues from the working
folder of a killed export with the same parameters. `write_manifest` writes the last file.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from asterism.export.executors import Execution, check_execution, memory_limit
from asterism.export.export_schema import ExportPlan
from asterism.export.graph_source import (
    ScannableGraph,
    pin_version,
    sample_parameters,
    version_digest,
)
from asterism.export.run_state import ExportRun
from asterism.local_paths import local_path
from asterism_io.durable_files import make_folder
from asterism_io.remote_storage import RemoteFolder, redact
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportShape:
    """Number of partitions, and their content."""

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
    """Provide a running export, and publish it when the context ends.

    Yields None if an identical export is already published.

    Parameters
    ----------
    graph : ScannableGraph
        Graph to read. One version is pinned meanwhile.
    target : ExportTarget
        Destination.
    layout : ExportPlan
        Types and columns to export.
    parameters : mapping
        Arguments of the export. An unfinished export with other arguments is not resumed.
    version : int or None
        Version to export. None uses the current one.
    shape : ExportShape
        Partitions and their content.
    execution : Execution
        Common options.
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
                f"version={version}: the interrupted export reads version "
                f"{pinned_version}; pass that version, or resume=False"
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
                    f"version {pinned_version} of space {graph.space!r}: expected the content that "
                    "the interrupted export read; pass resume=False, or another folder"
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
    """Return the version of the first node found, which is then read throughout."""
    for kind in layout.nodes:
        for batch in graph.scan_nodes(kind.name, (), version=version, rows=1):
            return batch.version
    raise InvalidRequest(f"space {graph.space!r}: expected nodes to export, it has none")


def write_manifest(run: ExportRun, content: Mapping[str, Any]) -> None:
    """Write the manifest, which is the last file.

    It has ``content``, the source of the export, and the size and digest of every other file.
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
    """Return the manifest of an export that has just been published."""
    manifest = target.manifest()
    if manifest is None:
        raise Corrupt(
            f"{target.file_path(MANIFEST)}: no such file, although it was written just now"
        )
    return manifest


MANIFEST = "manifest.json"
_STATE = "state.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTarget:
    """Destination of an export: a folder, or an address as fsspec names it."""

    path: Path | None
    address: str

    @classmethod
    def parse(cls, out: str | Path) -> ExportTarget:
        """Parse ``out``; ``file://`` addresses are folders, and a leading ``~`` is the home folder.

        Raises
        ------
        InvalidRequest
            If ``out`` names neither a folder nor an address.
        """
        text = os.fspath(out) if isinstance(out, str | os.PathLike) else None
        path = text.removeprefix("file://") if isinstance(text, str) else ""
        if text is None or not path or "\0" in path:
            raise InvalidRequest(
                f"out={out!r:.200}: expected a folder or an address; '.' is the current folder"
            )
        if path != text:
            return cls(path=Path(path), address="")
        return (
            cls(path=None, address=text.rstrip("/"))
            if "://" in text
            else cls(path=Path(os.path.expanduser(text)), address="")
        )

    @property
    def display_name(self) -> str:
        """Display name, without secrets."""
        return redact(self.address) if self.path is None else str(self.path)

    def file_path(self, name: str) -> str | Path:
        """Return the path or address of one of its files."""
        return self.path / name if self.path is not None else f"{self.address}/{name}"

    def manifest(self) -> dict[str, Any] | None:
        """Return the manifest of a finished export at the target, or None."""
        try:
            content = (
                (self.path / MANIFEST).read_bytes()
                if self.path is not None
                else RemoteFolder(self.address, content_name="export").read(MANIFEST)
            )
            manifest: Any = json.loads(content)
        except (OSError, ValueError, NotFound):
            return None
        return manifest if isinstance(manifest, dict) else None

    @property
    def is_occupied(self) -> bool:
        """True if the target exists and is not empty, or holds an export."""
        if self.path is None:
            return self.manifest() is not None
        return self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir()))

    @property
    def is_export(self) -> bool:
        """True if the target holds a finished export."""
        return "asked" in (self.manifest() or {})

    def working_folder(self, scratch: str | Path | None) -> Path:
        """Return the working folder of an unfinished export, always the same for one target."""
        if self.path is not None and scratch is None:
            return self.path.with_name(f"{self.path.name}.partial")
        location = self.address or str(self.path.absolute() if self.path is not None else "")
        folder = local_path("scratch", tempfile.gettempdir() if scratch is None else scratch)
        return (
            folder / f"asterism-export-{hashlib.sha256(location.encode()).hexdigest()[:16]}"
        ).absolute()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingFolder:
    """Working folder of a running export."""

    folder: Path
    state: Mapping[str, Any]
    """Arguments of the export, and the version and digest that it reads."""
    resumed: bool
    published: bool
    """True if the export is published and only the folder remains to be removed."""

    @property
    def scratch(self) -> Path:
        """Folder for temporary files."""
        return self.folder / "scratch"

    @property
    def out(self) -> Path:
        """Folder for output files, unless they go to an address."""
        return self.folder / "files"

    def begin(self, state: Mapping[str, Any]) -> WorkingFolder:
        """Create the subfolders and record the state of a new export."""
        self.scratch.mkdir(parents=True)
        self.out.mkdir()
        temporary = self.folder / f"{_STATE}.making"
        temporary.write_text(json.dumps({**state, "boot": _boot_id()}))
        temporary.rename(self.folder / _STATE)
        return replace(self, state=state)


@contextmanager
def open_working_folder(
    target: ExportTarget,
    parameters: Mapping[str, Any],
    *,
    overwrite: bool,
    resume: bool,
    scratch: str | Path | None,
) -> Iterator[WorkingFolder]:
    """Provide the working folder of an interrupted or new export until it is published.

    If the block fails, the folder is removed, unless ``resume`` is set.

    Raises
    ------
    Conflict
        The target exists, another process exports to it, or an unfinished export to it has other
        arguments or may not be resumed.
    """
    folder = target.working_folder(scratch)
    lock = _lock_folder(folder, target)
    try:
        state = _state(folder)
        if state is not None and resume:
            differing = sorted(key for key in parameters if parameters[key] != state.get(key))
            if differing:
                differences = ", ".join(
                    f"{key} {state.get(key)!r}, not {parameters[key]!r}" for key in differing
                )
                raise Conflict(
                    f"{folder}: the unfinished export to {target.display_name} is of "
                    f"{differences}; pass the same options, or resume=False"
                )
        working_folder = WorkingFolder(
            folder=folder, state=state or {}, resumed=state is not None, published=False
        )
        if (
            resume
            and not working_folder.out.is_dir()
            and _matches(parameters, target.manifest())
            and (state is not None or not overwrite)
        ):
            yield replace(working_folder, published=True)
            return
        if target.is_occupied and not target.is_export:
            raise Conflict(
                f"out={target.display_name}: expected a new folder, or an export to replace, found "
                "other files; pass another folder, or remove these files"
            )
        if target.is_occupied and not overwrite:
            raise Conflict(
                f"out={target.display_name}: expected a folder that does not exist; pass another "
                "one, or overwrite=True"
            )
        if state is not None and not resume and not overwrite:
            raise Conflict(
                f"{folder}: an export to {target.display_name} was interrupted; pass resume=True "
                "to continue it, or overwrite=True to start again"
            )
        if state is None or not resume or state.get("boot") != _boot_id():
            # After a reboot, data that was not yet synced may be lost. Only work of this boot is
            # resumed.
            working_folder = replace(working_folder, state={}, resumed=False)
            _empty_folder(folder)
        try:
            yield working_folder
        except BaseException:
            if not resume:
                shutil.rmtree(folder, ignore_errors=True)
            raise
    finally:
        with suppress(OSError):
            folder.rmdir()  # an empty folder is of no use for resuming
        os.close(lock)


def _lock_folder(folder: Path, target: ExportTarget) -> int:
    """Create the folder and lock it for this process until the descriptor is closed."""
    while True:
        make_folder(folder)
        lock = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.exists() and os.fstat(lock).st_ino == folder.stat().st_ino:
                return lock
        except BlockingIOError as error:
            os.close(lock)
            raise Conflict(
                f"{folder}: an export to {target.display_name} is running in another "
                "process; wait for it"
            ) from error
        os.close(lock)  # another process removed the folder in the meantime; try again


def _matches(parameters: Mapping[str, Any], manifest: Mapping[str, Any] | None) -> bool:
    return manifest is not None and manifest.get("asked") == parameters


def _state(folder: Path) -> dict[str, Any] | None:
    try:
        state: dict[str, Any] = json.loads((folder / _STATE).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return state


def _boot_id() -> str:
    return _BOOT.read_text().strip() if _BOOT.exists() else ""


def _empty_folder(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove_previous(run: ExportRun, target: ExportTarget) -> None:
    """Remove an earlier export at an address, the manifest first.

    Without a manifest, the remaining files are not mistaken for an export.
    """
    if target.path is not None:
        return
    remote_folder = RemoteFolder(target.address, content_name="export")
    old_files = run.run_step(
        "replaced", lambda: {"old": sorted((target.manifest() or {"files": []})["files"])}
    )["old"]

    def remove() -> None:
        for path in (MANIFEST, *old_files):
            remote_folder.remove(path)

    if old_files:
        run.run_step("removed", remove)


def publish(working_folder: WorkingFolder, target: ExportTarget) -> None:
    """Rename the finished export to its target, and then remove what it replaces.

    Idempotent: a repeated call continues an interrupted one.
    """
    if target.path is not None and working_folder.out.is_dir():
        _sync_all(working_folder.out)
        make_folder(target.path.parent)
        previous = working_folder.folder / "replaced"
        if target.path.is_dir() and not any(target.path.iterdir()):
            target.path.rmdir()
        elif target.path.exists():
            _move(target.path, previous)
        _move(working_folder.out, target.path)
        _sync(target.path.parent)
    shutil.rmtree(working_folder.folder)


def _move(source: Path, target: Path) -> None:
    """Rename a folder, or copy it next to the target first if they are on different disks."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        temporary = target.with_name(f"{target.name}.making")
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(source, temporary)
        _sync_all(temporary)
        temporary.rename(target)
        shutil.rmtree(source)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
