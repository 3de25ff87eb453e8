"""The processes that carry out tasks of a local cluster."""

from __future__ import annotations

import psutil

from storaged.fork_server import MODULES
from tests.kit.cluster import LocalCluster

BUILD = "storaged.build"


def task_processes(cluster: LocalCluster, name: str, modules: tuple[str, ...] = MODULES) -> list[psutil.Process]:
    """Return the processes of a storaged that carry out tasks of some modules."""
    return [child for child in psutil.Process(cluster[name].pid).children(recursive=True) if title(child).startswith(modules)]


def builds(cluster: LocalCluster, name: str | None = None) -> list[psutil.Process]:
    """Return the build processes of a storaged; of all storageds, orphans too, where none is named."""
    if name is not None:
        return task_processes(cluster, name, (BUILD,))
    folders = tuple(str(cluster.folder_of(daemon)) for daemon in cluster.daemons if daemon.startswith("storaged"))
    titles = {process: title(process) for process in psutil.process_iter()}
    return [process for process, title in titles.items() if title.startswith(BUILD) and any(folder in title for folder in folders)]


def title(process: psutil.Process) -> str:
    """Return the command line of a process, empty where it has ended."""
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def gone(process: psutil.Process) -> bool:
    """Return whether a process has ended; nobody may have reaped it yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
