"""Scrub: served images are checked at intervals; damaged versions are withdrawn and repaired.

An image is mapped: where its file is altered under a running storaged, and the altered page is read, samples are taken
from it. The scrub bounds for how long. It reads the files through the page cache, where a mapping sees the same bytes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from asterism_proto.errors import Corrupt
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.store.checked import check_image

logger = logging.getLogger(__name__)

_STOP_S = 5.0
_LOOK_S = 5.0
"""Seconds between two searches for a version that was never checked."""
_MIB = 1 << 20

Key = tuple[int, int, str]
"""(space, version, digest)."""


class _Stopped(Exception):
    """The check was stopped."""


class Scrubber:
    """Checks what `Holdings` serves, one version at a time, in a thread of its own.

    Parameters
    ----------
    holdings : Holdings
    folders : Folders
    interval_s : float
        Seconds between the ends of two checks of a version; 0 checks nothing.
    mib_per_s : float
        MiB read per second at most.
    damaged : callable
        Called with a version of which a file is altered or missing, and the cause.
    """

    def __init__(
        self,
        holdings: Holdings,
        folders: Folders,
        *,
        interval_s: float,
        mib_per_s: float,
        damaged: Callable[[WantedSpace, Wanted, str], None],
    ) -> None:
        self._holdings, self._folders = holdings, folders
        self._interval_s, self._mib_per_s, self._damaged = interval_s, mib_per_s, damaged
        self._checked: dict[Key, float] = {}
        """The end of the last check of each version, by the monotonic clock."""
        self._lock = threading.Lock()
        self.bytes_read = 0
        """Since the start."""
        self.versions_damaged = 0
        """Versions found damaged since the start."""
        self._hurry = False
        """Read without a limit: damage was found, and other versions may share the file."""
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

    def verified(self, space: WantedSpace, want: Wanted) -> None:
        """Record that every byte of a version was just checked while it was opened."""
        with self._lock:
            self._checked[_key(space, want)] = time.monotonic()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self.check_next():
                    continue
            except Exception:  # the thread must not end
                logger.exception("scrub_crashed")
            self._stopping.wait(min(_LOOK_S, self._interval_s))

    def check_next(self) -> bool:
        """Check the version that is overdue for longest; return False if none is due."""
        due = self._due()
        if due is None:
            self._hurry = False
            return False
        space, want = due
        try:
            for part in space.parts:
                folder = self._folders.build(space.space_id, want.job_id) / "parts" / f"p{part:05d}"
                check_image(folder, want.images.get(part, ""), self._pace(space, want))
        except _Stopped:
            return True
        except Corrupt as error:
            if self._holdings.wants(space.space_id, want):
                self._found(space, want, error)
        with self._lock:
            self._checked[_key(space, want)] = time.monotonic()
        return True

    def _found(self, space: WantedSpace, want: Wanted, error: Corrupt) -> None:
        self.versions_damaged += 1
        logger.error("image_damaged", extra={"space": space.name, "version": want.version, "cause": error.message})
        with self._lock:  # versions share files: the others of the space are checked next
            self._checked = {key: at for key, at in self._checked.items() if key[0] != space.space_id}
        self._hurry = True
        self._damaged(space, want, error.message)

    def _due(self) -> tuple[WantedSpace, Wanted] | None:
        served = self._holdings.served_versions()
        keys = {_key(space, want) for space, want in served}
        with self._lock:
            self._checked = {key: at for key, at in self._checked.items() if key in keys}
            ends = [(self._checked.get(_key(space, want), float("-inf")), number) for number, (space, want) in enumerate(served)]
        if not ends:
            return None
        end, number = min(ends)
        return served[number] if time.monotonic() - end >= self._interval_s else None

    def _pace(self, space: WantedSpace, want: Wanted) -> Callable[[int], None]:
        """Return a callback for the bytes of each read, which counts them and limits the rate."""
        began, read = time.monotonic(), 0

        def count(size: int) -> None:
            nonlocal read
            read += size
            self.bytes_read += size
            early_s = began + read / (self._mib_per_s * _MIB) - time.monotonic()
            if self._stopping.wait(early_s) if early_s > 0 and not self._hurry else self._stopping.is_set():
                raise _Stopped
            if not self._holdings.wants(space.space_id, want):
                raise _Stopped

        return count


def _key(space: WantedSpace, want: Wanted) -> Key:
    return space.space_id, want.version, want.digest
