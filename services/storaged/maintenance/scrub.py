"""Scrub: check served images at intervals; withdraw and repair damaged versions.

Images are mapped. If a file is altered under a running storaged, samples are taken from the altered
pages. The scrub limits how long this lasts. It reads the files through the page cache, where a
mapping sees the same bytes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Corrupt
from storaged.local_spaces import DesiredSpace, DesiredVersion, LocalSpaces
from storaged.paths import DataPaths
from storaged.store.checksums import check_image

logger = logging.getLogger(__name__)

_STOP_S = 5.0
_POLL_S = 5.0
"""Seconds between two searches for a version that was never checked."""
_MIB = 1 << 20

VersionKey = tuple[int, int, str]
"""(space, version, digest)."""


class _Stopped(Exception):
    """The check was stopped."""


class Scrubber:
    """Checks the versions that `LocalSpaces` serves, one at a time, in a separate thread.

    Parameters
    ----------
    local_spaces : LocalSpaces
    paths : DataPaths
    interval_s : float
        Seconds between the ends of two checks of a version; 0 disables the scrub.
    mib_per_s : float
        Limit of the read rate, in MiB per second.
    on_damage : callable
        Called with a version that has an altered or missing file, and with the cause.
    """

    def __init__(
        self,
        local_spaces: LocalSpaces,
        paths: DataPaths,
        *,
        interval_s: float,
        mib_per_s: float,
        on_damage: Callable[[DesiredSpace, DesiredVersion, str], None],
    ) -> None:
        self._local_spaces, self._paths = local_spaces, paths
        self._interval_s, self._mib_per_s, self._on_damage = interval_s, mib_per_s, on_damage
        self._checked: dict[VersionKey, float] = {}
        """End of the last check of each version, by the monotonic clock."""
        self._lock = threading.Lock()
        self.bytes_read = 0
        """Bytes read since the start."""
        self.versions_damaged = 0
        """Number of versions found damaged since the start."""
        self._is_unthrottled = False
        """True to read without rate limit: damage was found, and versions may share files.
        """
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scrub", daemon=True)

    def start(self) -> None:
        """Start the checks."""
        if self._interval_s > 0:
            self._thread.start()

    def stop(self) -> None:
        """Stop the checks, after at most one more mebibyte."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def note_verified(self, space: DesiredSpace, desired: DesiredVersion) -> None:
        """Record that every byte of a version was just checked while it was opened."""
        with self._lock:
            self._checked[_key(space, desired)] = time.monotonic()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self.check_next():
                    continue
            except Exception:  # The thread must not end.
                logger.exception("scrub_crashed")
            self._stopping.wait(min(_POLL_S, self._interval_s))

    def check_next(self) -> bool:
        """Check the version that is overdue for longest; return False if none is due."""
        due = self._next_due()
        if due is None:
            self._is_unthrottled = False
            return False
        space, desired = due
        try:
            for part in space.parts:
                folder = (
                    self._paths.build(space.space_id, desired.job_id) / "parts" / f"p{part:05d}"
                )
                check_image(folder, desired.images.get(part, ""), self._throttle(space, desired))
        except _Stopped:
            return True
        except Corrupt as error:
            if self._local_spaces.is_desired(space.space_id, desired):
                self._report_damage(space, desired, error)
        with self._lock:
            self._checked[_key(space, desired)] = time.monotonic()
        return True

    def _report_damage(self, space: DesiredSpace, desired: DesiredVersion, error: Corrupt) -> None:
        self.versions_damaged += 1
        logger.error(
            "image_damaged",
            extra={"space": space.name, "version": desired.version, "cause": error.message},
        )
        with self._lock:  # Versions share files: check all versions of the space next.
            self._checked = {
                key: checked_at
                for key, checked_at in self._checked.items()
                if key[0] != space.space_id
            }
        self._is_unthrottled = True
        self._on_damage(space, desired, error.message)

    def _next_due(self) -> tuple[DesiredSpace, DesiredVersion] | None:
        served = self._local_spaces.served_versions()
        keys = {_key(space, desired) for space, desired in served}
        with self._lock:
            self._checked = {
                key: checked_at for key, checked_at in self._checked.items() if key in keys
            }
            last_checks = [
                (self._checked.get(_key(space, desired), float("-inf")), number)
                for number, (space, desired) in enumerate(served)
            ]
        if not last_checks:
            return None
        last_check, number = min(last_checks)
        return served[number] if time.monotonic() - last_check >= self._interval_s else None

    def _throttle(self, space: DesiredSpace, desired: DesiredVersion) -> Callable[[int], None]:
        """Return a callback for the bytes of each read, which counts them and limits the rate."""
        started, read = time.monotonic(), 0

        def count(size: int) -> None:
            nonlocal read
            read += size
            self.bytes_read += size
            early_s = started + read / (self._mib_per_s * _MIB) - time.monotonic()
            if (
                self._stopping.wait(early_s)
                if early_s > 0 and not self._is_unthrottled
                else self._stopping.is_set()
            ):
                raise _Stopped
            if not self._local_spaces.is_desired(space.space_id, desired):
                raise _Stopped

        return count


def _key(space: DesiredSpace, desired: DesiredVersion) -> VersionKey:
    return space.space_id, desired.version, desired.digest
