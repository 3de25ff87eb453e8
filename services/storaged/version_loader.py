"""Loading of versions, in a separate thread.

Verifying an image may take minutes; tasks, heartbeats and stops must not wait for it. A damaged
version is not served; its images are repaired if possible (`storaged.maintenance.image_repair`).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asterism_io.remote_storage import redact
from asterism_proto.errors import Corrupt, NotFound
from storaged.local_spaces import DesiredSpace, DesiredVersion, LocalSpaces
from storaged.maintenance.image_repair import ImageRepair
from storaged.paths import DataPaths
from storaged.sampling import LocalVersion
from storaged.store.huge_pages import fits_memory, image_bytes
from storaged.store.image import PartImage, open_part

logger = logging.getLogger(__name__)

_STOP_S = 5.0
_MAX_RETRY_S = 3600.0
_DOUBLINGS = 20
"""Limit of the exponent in the retry delay, which has long reached its maximum by then."""
_FIRST_RETRY_S = 0.25
"""Seconds until the first retry of a version without known damage.

Its cause, such as too many open files, may be over in a moment.
"""

StartRepair = Callable[
    [DesiredSpace, DesiredVersion, Sequence[int], Callable[[], None]], ImageRepair
]


@dataclass(slots=True)
class _LoadAttempt:
    """The retry state of a version that could not be opened."""

    last_attempt_at: float
    """Monotonic time of the last attempt, in seconds."""
    repair: ImageRepair | None = None
    """The latest repair."""
    repairs_started: int = 0
    """Number of repairs started."""
    retry_at: float = 0.0
    """Monotonic time before which no repair is started; 0 until the latest repair has ended."""
    consecutive_failures: int = 0
    """Number of consecutive attempts that failed for a reason other than damage."""

    def wait_s(self, now: float, retry_s: float) -> float:
        """Return the seconds until the next attempt.

        The version rests while a repair runs and is retried as soon as it ends. After damage the
        delay is ``retry_s``; after other failures it doubles each time, up to ``retry_s``.
        """
        if self.repair is not None:
            if not self.repair.is_done:
                return math.inf
            if not self.retry_at:
                return 0.0
        delay_s = (
            min(retry_s, _FIRST_RETRY_S * 2.0 ** min(self.consecutive_failures - 1, _DOUBLINGS))
            if self.consecutive_failures
            else retry_s
        )
        return self.last_attempt_at + delay_s - now


class VersionLoader:
    """Loads the versions that `LocalSpaces` should serve, one at a time, newest first.

    Parameters
    ----------
    local_spaces : LocalSpaces
    paths : DataPaths
    verify : bool
        Check every byte of an image before it is served.
    verify_bytes : int
        Without ``verify``: check every byte of versions up to this size in bytes, and only the
        files with offsets of larger ones. `storaged.maintenance.scrub` checks the rest.
    retry_s : float
        Longest delay in seconds before a version that could not be opened is tried again. Damaged
        partitions are repaired again after this delay, which doubles with each repair.
    on_change : callable
        Called when a version was opened or refused.
    start_repair : callable, optional
        Starts a repair of some partitions of a version; calls back when it has ended.
    on_verified : callable
        Called with each version that was verified completely before it was served.
    """

    def __init__(
        self,
        local_spaces: LocalSpaces,
        paths: DataPaths,
        *,
        verify: bool,
        verify_bytes: int = 0,
        retry_s: float,
        on_change: Callable[[], None],
        start_repair: StartRepair | None = None,
        on_verified: Callable[[DesiredSpace, DesiredVersion], None] = lambda *_: None,
    ) -> None:
        self._local_spaces, self._paths, self._verify = local_spaces, paths, verify
        self._verify_bytes, self._on_verified = verify_bytes, on_verified
        self._suspect_versions: frozenset[tuple[int, int]] = frozenset()
        """(space, version) of withdrawn versions, to verify completely before they are served.
        """
        self._retry_s, self._on_change, self._start_repair = retry_s, on_change, start_repair
        self._attempts: dict[tuple[int, int, str], _LoadAttempt] = {}
        """Retry states by (space, version, digest)."""
        self._stopping = False
        self._due = threading.Event()
        self._wait_s = retry_s
        """Seconds until the next version is due."""
        self._thread = threading.Thread(target=self._run, name="version-loading", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Wake the thread: there may be a version to load."""
        self._due.set()

    def reload(self, space: DesiredSpace, desired: DesiredVersion, cause: str) -> None:
        """Withdraw a version that was found damaged, then load it again.

        It is verified completely, and repaired if necessary, before it is served.
        """
        with self._local_spaces.lock:
            self._suspect_versions |= {(space.space_id, desired.version)}
        if self._local_spaces.withdraw(space.space_id, desired, cause):
            logger.error(
                "version_withdrawn",
                extra={"space": space.name, "version": desired.version, "cause": cause},
            )
            self._on_change()
        self._due.set()

    def stop(self) -> None:
        """Stop after the current partition, without waiting for long."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        while not self._stopping:
            self._due.clear()
            try:
                if self._load_next():
                    continue
            except Exception:  # The thread must not end, whatever the error.
                logger.exception("version_loading_crashed")
            self._due.wait(self._wait_s)

    def _load_next(self) -> bool:
        """Load the newest version that is due; return False if none is due."""
        now = time.monotonic()
        unloaded = self._local_spaces.unloaded_versions()
        keys = {(space.space_id, desired.version, desired.digest) for space, desired in unloaded}
        self._attempts = {key: attempt for key, attempt in self._attempts.items() if key in keys}
        with self._local_spaces.lock:
            self._suspect_versions &= self._local_spaces.desired_versions()
        self._wait_s = self._retry_s
        for space, desired in unloaded:
            attempt = self._attempts.setdefault(
                (space.space_id, desired.version, desired.digest),
                _LoadAttempt(last_attempt_at=-math.inf),
            )
            wait_s = attempt.wait_s(now, self._retry_s)
            if wait_s <= 0:
                attempt.last_attempt_at = now
                try:
                    self._load(space, desired, attempt)
                # The failure of one version leaves other versions alone.
                except Exception as error:
                    logger.exception(
                        "version_loading_failed",
                        extra={"space": space.name, "version": desired.version},
                    )
                    attempt.consecutive_failures += 1
                    self._refuse(space, desired, f"it cannot be opened: {redact(repr(error))}")
                return True
            self._wait_s = min(self._wait_s, wait_s)
        return False

    def _load(self, space: DesiredSpace, desired: DesiredVersion, attempt: _LoadAttempt) -> None:
        images: dict[int, PartImage] = {}
        damage: dict[int, str] = {}
        try:
            huge_pages = fits_memory(self._folder(space, desired, part) for part in space.parts)
            verify = self._verifies_all(space, desired)
            for part in space.parts:
                if self._stopping or not self._local_spaces.is_desired(space.space_id, desired):
                    attempt.last_attempt_at = -math.inf  # No delay if it is wanted again.
                    self._on_change()
                    return
                self._local_spaces.note_loading(space.space_id, desired.version, part)
                try:
                    images[part] = self._open_image(
                        space, desired, part, verify=verify, huge_pages=huge_pages
                    )
                except (Corrupt, NotFound) as error:
                    damage[part] = error.message
        except OSError as error:
            attempt.consecutive_failures += 1
            self._refuse(space, desired, str(error))
            return
        attempt.consecutive_failures = 0
        if damage:
            first_damage = next(iter(damage.values()))
            repair_status = self._repair_status(space, desired, attempt, sorted(damage))
            self._refuse(space, desired, f"{first_damage}{repair_status}")
            return
        version = LocalVersion(
            space_id=space.space_id,
            version=desired.version,
            digest=desired.digest,
            schema=space.schema,
            totals=desired.totals,
            named_totals=desired.named_totals,
            parts=images,
        )
        if verify:
            self._on_verified(space, desired)
        if self._local_spaces.serve(space.space_id, desired, version):
            logger.info(
                "version_loaded",
                extra={"space": space.name, "version": desired.version, "parts": len(images)},
            )
        self._on_change()

    def _folder(self, space: DesiredSpace, desired: DesiredVersion, part: int) -> Path:
        return self._paths.build(space.space_id, desired.job_id) / "parts" / f"p{part:05d}"

    def _verifies_all(self, space: DesiredSpace, desired: DesiredVersion) -> bool:
        """Return whether every byte of a version is checked before it is served."""
        if self._verify or (space.space_id, desired.version) in self._suspect_versions:
            return True
        return (
            image_bytes(self._folder(space, desired, part) for part in space.parts)
            <= self._verify_bytes
        )

    def _open_image(
        self,
        space: DesiredSpace,
        desired: DesiredVersion,
        part: int,
        *,
        verify: bool,
        huge_pages: bool,
    ) -> PartImage:
        """Open the image of a partition and compare its digest with that of the version."""
        folder = self._folder(space, desired, part)
        return open_part(
            folder,
            verify=verify,
            offsets=True,
            huge_pages=huge_pages,
            digest=desired.images.get(part, ""),
        )

    def _repair_status(
        self,
        space: DesiredSpace,
        desired: DesiredVersion,
        attempt: _LoadAttempt,
        parts: Sequence[int],
    ) -> str:
        """Return the status of the repair of damaged partitions, as a suffix to the cause.

        Starts a repair if one is due.
        """
        if self._start_repair is None:
            return ""
        if attempt.repair is not None and not attempt.retry_at:
            attempt.retry_at = attempt.last_attempt_at + min(
                self._retry_s * 2.0 ** min(attempt.repairs_started - 1, _DOUBLINGS), _MAX_RETRY_S
            )
        elif attempt.repair is None or attempt.last_attempt_at >= attempt.retry_at:
            attempt.repair = self._start_repair(space, desired, parts, self.wake)
            attempt.repairs_started, attempt.retry_at = attempt.repairs_started + 1, 0.0
        return f" ({attempt.repair})"

    def _refuse(self, space: DesiredSpace, desired: DesiredVersion, cause: str) -> None:
        self._local_spaces.note_fault(space.space_id, desired, cause)
        logger.error(
            "version_rejected",
            extra={"space": space.name, "version": desired.version, "cause": cause},
        )
        self._on_change()
