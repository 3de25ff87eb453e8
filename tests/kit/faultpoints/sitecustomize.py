"""Faults injected into the daemons and builds of a test.

The interpreter imports this module at its start if `tests.kit.faults` has prepared the environment.
The zygote of the tests runs it before it imports the daemons; a forked process reads the file that
its own environment names.

A file lists the faults. Each fault point reads it again, so that a test can change the faults while
the daemon runs. The daemons have no code for faults: their own code runs, and waits or is killed by
a real signal at places that the test names.

    {"hold_build_in": ["sweep"]}   a build waits in the middle of a pass of this name until the file
                                   changes
    {"die_before_write_of": "1/v"} metad dies (SIGKILL) before it writes a key with this prefix;
    "die_after_write_of": after
    {"wall_ahead_s": 3600}         shift of the wall clock; the monotonic clock is unchanged
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import time
import types
from collections.abc import Callable
from typing import Any


def _faults_path() -> str:
    return os.environ.get("ASTERISM_TEST_FAULTS", "")  # noqa: TID251 - it comes before any settings


def _read_faults() -> dict[str, Any]:
    name = _faults_path()
    if not name:
        return {}
    try:
        with open(name) as file:
            faults: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return {}
    return faults


_armed = ""


def _wait_after(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        global _armed
        result = function(*args, **kwargs)
        if _armed:
            reached, _armed = _armed, ""
            with open(_faults_path() + ".reached", "a") as file:
                file.write(f"{os.getpid()} {reached}\n")
            while _is_held(reached):
                time.sleep(0.01)
        return result

    return wrapper


def _is_held(name: str) -> bool:
    return name in _read_faults().get("hold_build_in", ())


def _patch_build(module: Any) -> None:
    """Wait after the first action of a build step, when its output is partial."""
    from storaged.store import alias_table_store, engine, image_writer

    def phase(
        self: Any, name: str, original: Callable[..., None] = module.ProgressReporter.phase
    ) -> None:
        global _armed
        _armed = name if _is_held(name) else ""
        original(self, name)

    module.ProgressReporter.phase = phase
    module.ProgressReporter.step = _wait_after(module.ProgressReporter.step)
    for owner, names in (
        (alias_table_store.AliasTableWriter, ("append",)),
        (image_writer.AppendFile, ("append",)),
        (image_writer.ArrayFiles, ("create", "map")),
        (image_writer, ("_sync_file",)),
        (engine.RocksEngine, ("flush",)),
    ):
        for name in names:
            setattr(owner, name, _wait_after(getattr(owner, name)))


def _patch_metad(module: Any) -> None:
    def write(
        self: Any, changes: Any, original: Callable[..., None] = module.RocksStore.write
    ) -> None:
        faults = _read_faults()

        def die_at(point: str) -> None:
            prefix = faults.get(point)
            if prefix and any(
                key.startswith(prefix.encode()) and value is not None
                for key, value in changes.items()
            ):
                os.kill(os.getpid(), signal.SIGKILL)

        die_at("die_before_write_of")
        original(self, changes)
        die_at("die_after_write_of")

    module.RocksStore.write = write


def _patch_grpc(module: Any) -> None:
    """Keep the real wall clock for gRPC, because its C core exchanges wall times with Python."""
    module.time = types.SimpleNamespace(**{**vars(time), "time": plain_time})


class _Finder(importlib.abc.MetaPathFinder):
    """Changes a module right after its import."""

    def __init__(self) -> None:
        self._changes: dict[str, Callable[[Any], None]] = {
            "storaged.build.progress": _patch_build,
            "metad.store.rocksdb_store": _patch_metad,
            **dict.fromkeys(("grpc._server", "grpc._channel", "grpc._common"), _patch_grpc),
        }

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        change = self._changes.pop(name, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            change(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


plain_time, plain_time_ns = time.time, time.time_ns
sys.meta_path.insert(0, _Finder())
time.time = lambda: plain_time() + _read_faults().get("wall_ahead_s", 0)
time.time_ns = lambda: plain_time_ns() + int(_read_faults().get("wall_ahead_s", 0) * 1e9)
