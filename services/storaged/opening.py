"""Opening versions, in a thread of its own: an image may take minutes to verify, and orders, beats and stops do not wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from asterism_proto.errors import AsterismError, NotFound
from storaged.draw import Version
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.store.image import open_part

logger = logging.getLogger(__name__)

_STOP_S = 5.0


class Opener:
    """Opens what `Holdings` wants served, one version at a time, the newest first.

    Parameters
    ----------
    holdings : Holdings
    folders : Folders
    verify : bool
        Check every byte of an image before it is served.
    retry_s : float
        How long a version that could not be opened rests before it is tried again: the cause may be gone by then.
    changed : callable
        Called when a version was opened, or refused.
    """

    def __init__(self, holdings: Holdings, folders: Folders, *, verify: bool, retry_s: float, changed: Callable[[], None]) -> None:
        self._holdings, self._folders, self._verify = holdings, folders, verify
        self._retry_s, self._changed = retry_s, changed
        self._tried: dict[tuple[int, int, str], float] = {}
        """(space, version, digest) of what was refused -> when."""
        self._stopping = False
        self._due = threading.Event()
        self._thread = threading.Thread(target=self._run, name="opening", daemon=True)

    def start(self) -> None:
        """Begin to open."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something to open."""
        self._due.set()

    def stop(self) -> None:
        """End between two parts, without waiting for long."""
        self._stopping = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_S)

    def _run(self) -> None:
        while not self._stopping:
            self._due.clear()
            try:
                if self._open_next():
                    continue
            except Exception:  # one version's trouble, whatever it was, is not the others'
                logger.exception("opening_crashed")
            self._due.wait(self._retry_s)

    def _open_next(self) -> bool:
        """Open the newest version that is due; False where none is."""
        now = time.monotonic()
        waiting = self._holdings.unopened()
        keys = {(space.space_id, want.version, want.digest) for space, want in waiting}
        self._tried = {key: at for key, at in self._tried.items() if key in keys}
        for space, want in waiting:
            key = (space.space_id, want.version, want.digest)
            if key in self._tried and now - self._tried[key] < self._retry_s:
                continue
            self._tried[key] = now
            self._open(space, want)
            return True
        return False

    def _open(self, space: WantedSpace, want: Wanted) -> None:
        folder = self._folders.build(space.space_id, want.job_id) / "parts"
        try:
            images = {}
            for part in space.parts:
                if self._stopping or not self._holdings.wants(space.space_id, want):
                    return
                self._holdings.opening(space.space_id, want.version, part)
                image = open_part(folder / f"p{part:05d}", verify=self._verify)
                if image.digest != want.images.get(part):
                    raise NotFound(
                        f"the image of part {part} has digest {image.digest}, version {want.version} was sealed with {want.images.get(part)}"
                    )
                images[part] = image
        except (AsterismError, OSError) as error:
            cause = error.message if isinstance(error, AsterismError) else str(error)
            self._holdings.refused(space.space_id, want, cause)
            logger.error("version_refused", extra={"space": space.name, "version": want.version, "cause": cause})
            return
        finally:
            self._changed()
        version = Version(
            space_id=space.space_id,
            version=want.version,
            digest=want.digest,
            schema=space.schema,
            totals=want.totals,
            named=want.named,
            parts=images,
        )
        if self._holdings.opened(space.space_id, want, version):
            logger.info("version_opened", extra={"space": space.name, "version": want.version, "parts": len(images)})
        self._changed()
