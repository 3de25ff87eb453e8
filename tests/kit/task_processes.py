"""Processes that run the tasks of a local cluster."""

from __future__ import annotations

from collections.abc import Collection

import psutil

from storaged.tasks.fork_server import PROCESS_NAMES
from tests.kit.cluster import LocalCluster

BUILD = "storaged.build"


def task_processes(
    cluster: LocalCluster, name: str, names: Collection[str] = tuple(PROCESS_NAMES.values())
) -> list[psutil.Process]:
    """Return the processes of a storaged that run tasks, by their names."""
    return [
        child
        for child in psutil.Process(cluster[name].pid).children(recursive=True)
        if name_of(child) in names
    ]


def find_builds(cluster: LocalCluster, name: str | None = None) -> list[psutil.Process]:
    """Return the build processes of a storaged.

    Without a name, those of all storageds, orphans included.
    """
    if name is not None:
        return task_processes(cluster, name, (BUILD,))
    folders = tuple(
        str(cluster.folder_of(daemon))
        for daemon in cluster.daemons
        if daemon.startswith("storaged")
    )
    build_processes = [process for process in psutil.process_iter() if name_of(process) == BUILD]
    return [
        process
        for process in build_processes
        if any(path.startswith(folders) for path in _open_files(process))
    ]


def name_of(process: psutil.Process) -> str:
    """Return the name of a process; empty if it has ended."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _open_files(process: psutil.Process) -> list[str]:
    try:
        return [file.path for file in process.open_files()]
    except psutil.NoSuchProcess:
        return []


def has_ended(process: psutil.Process) -> bool:
    """Return whether a process has ended, reaped or not."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
