"""Opening versions, in a thread of its own: an image may take minutes to verify, and orders, beats and stops do not wait.

What is damaged is not served, but made again where somebody can (`storaged.remaking`).
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asterism_proto.errors import Corrupt, NotFound
from asterism_proto.places import redacted
from storaged.draw import Version
from storaged.folders import Folders
from storaged.holdings import Holdings, Wanted, WantedSpace
from storaged.remaking import Remaking
from storaged.store.checked import MANIFEST
from storaged.store.image import PartImage, open_part
from storaged.store.pages import fit, image_bytes

logger = logging.getLogger(__name__)

_STOP_S = 5.0
_LONGEST_REST_S = 3600.0
_DOUBLINGS = 20
"""Of a rest, at most: it has long become the longest by then."""
_FIRST_REST_S = 0.25
"""Of a version whose image was not seen to be damaged: what stood in the way, such as too many open files, may be over in a moment."""

Remake = Callable[[WantedSpace, Wanted, Sequence[int], Callable[[], None]], Remaking]


@dataclass(slots=True)
class _Tried:
    """A version that could not be opened."""

    at: float
    """When it was looked at last."""
    remaking: Remaking | None = None
    """The latest one."""
    begun: int = 0
    """How often its parts were begun to be made again."""
    again_at: float = 0.0
    """Not before; 0 until the latest remaking was seen to its end."""
    hindered: int = 0
    """How often in a row it could not be looked at for another reason than damage."""

    def wait_s(self, now: float, retry_s: float) -> float:
        """How long not to look at it: while it is made again, no longer; after damage ``retry_s``, else twice as long each time."""
        if self.remaking is not None:
            if not self.remaking.over:
                return math.inf
            if not self.again_at:
                return 0.0
        rest_s = min(retry_s, _FIRST_REST_S * 2.0 ** min(self.hindered - 1, _DOUBLINGS)) if self.hindered else retry_s
        return self.at + rest_s - now


class Opener:
    """Opens what `Holdings` wants served, one version at a time, the newest first.

    Parameters
    ----------
    holdings : Holdings
    folders : Folders
    verify : bool
        Check every byte of an image before it is served.
    verify_bytes : int
        Without ``verify``: check every byte of versions up to this size here, and of larger ones the files that hold
        offsets; the rest is left to `storaged.scrub`.
    retry_s : float
        How long a version that could not be opened rests at most before it is tried again: the cause may be gone by then.
        Damaged parts are made again after such a rest, then after twice as long, and so on.
    changed : callable
        Called when a version was opened, or refused.
    remake : callable, optional
        Begins to make parts of a version again, and calls back when that is over.
    verified : callable
        Called with each version whose every byte was checked before it was opened.
    """

    def __init__(
        self,
        holdings: Holdings,
        folders: Folders,
        *,
        verify: bool,
        verify_bytes: int = 0,
        retry_s: float,
        changed: Callable[[], None],
        remake: Remake | None = None,
        verified: Callable[[WantedSpace, Wanted], None] = lambda *_: None,
    ) -> None:
        self._holdings, self._folders, self._verify = holdings, folders, verify
        self._verify_bytes, self._verified = verify_bytes, verified
        self._suspected: frozenset[tuple[int, int]] = frozenset()
        """(space, version) of what was withdrawn: read whole before it is served again."""
        self._retry_s, self._changed, self._remake = retry_s, changed, remake
        self._tried: dict[tuple[int, int, str], _Tried] = {}
        """(space, version, digest) of what was refused."""
        self._stopping = False
        self._due = threading.Event()
        self._rest_s = retry_s
        """Until the next version is due."""
        self._thread = threading.Thread(target=self._run, name="opening", daemon=True)

    def start(self) -> None:
        """Begin to open."""
        self._thread.start()

    def wake(self) -> None:
        """There may be something to open."""
        self._due.set()

    def reopen(self, space: WantedSpace, want: Wanted, cause: str) -> None:
        """Withdraw a version that was found damaged; it is read whole, and made again where need be, before it is served."""
        with self._holdings.lock:
            self._suspected |= {(space.space_id, want.version)}
        if self._holdings.withdraw(space.space_id, want, cause):
            logger.error("version_withdrawn", extra={"space": space.name, "version": want.version, "cause": cause})
            self._changed()
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
            except Exception:  # this thread goes on, whatever it was
                logger.exception("opening_crashed")
            self._due.wait(self._rest_s)

    def _open_next(self) -> bool:
        """Open the newest version that is due; False where none is."""
        now = time.monotonic()
        waiting = self._holdings.unopened()
        keys = {(space.space_id, want.version, want.digest) for space, want in waiting}
        self._tried = {key: tried for key, tried in self._tried.items() if key in keys}
        with self._holdings.lock:
            self._suspected &= self._holdings.wanted_versions()
        self._rest_s = self._retry_s
        for space, want in waiting:
            tried = self._tried.setdefault((space.space_id, want.version, want.digest), _Tried(at=-math.inf))
            wait_s = tried.wait_s(now, self._retry_s)
            if wait_s <= 0:
                tried.at = now
                try:
                    self._open(space, want, tried)
                except Exception as error:  # one version's trouble, whatever it was, is not the others'
                    logger.exception("opening_failed", extra={"space": space.name, "version": want.version})
                    tried.hindered += 1
                    self._refuse(space, want, f"it can not be opened: {redacted(repr(error))}")
                return True
            self._rest_s = min(self._rest_s, wait_s)
        return False

    def _open(self, space: WantedSpace, want: Wanted, tried: _Tried) -> None:
        images: dict[int, PartImage] = {}
        damage: dict[int, str] = {}
        try:
            large = fit(self._folder(space, want, part) for part in space.parts)
            verify = self._checks_all(space, want)
            for part in space.parts:
                if self._stopping or not self._holdings.wants(space.space_id, want):
                    tried.at = -math.inf  # at once where it is wanted again
                    self._changed()
                    return
                self._holdings.opening(space.space_id, want.version, part)
                try:
                    images[part] = self._image(space, want, part, verify=verify, large=large)
                except (Corrupt, NotFound) as error:
                    damage[part] = error.message
        except OSError as error:
            tried.hindered += 1
            self._refuse(space, want, str(error))
            return
        tried.hindered = 0
        if damage:
            self._refuse(space, want, f"{next(iter(damage.values()))}{self._mended(space, want, tried, sorted(damage))}")
            return
        version = Version(
            space_id=space.space_id,
            version=want.version,
            digest=want.digest,
            schema=space.schema,
            totals=want.totals,
            named=want.named,
            parts=images,
        )
        if verify:
            self._verified(space, want)
        if self._holdings.opened(space.space_id, want, version):
            logger.info("version_opened", extra={"space": space.name, "version": want.version, "parts": len(images)})
        self._changed()

    def _folder(self, space: WantedSpace, want: Wanted, part: int) -> Path:
        return self._folders.build(space.space_id, want.job_id) / "parts" / f"p{part:05d}"

    def _checks_all(self, space: WantedSpace, want: Wanted) -> bool:
        """Return whether every byte of a version is checked before it is served."""
        if self._verify or (space.space_id, want.version) in self._suspected:
            return True
        return image_bytes(self._folder(space, want, part) for part in space.parts) <= self._verify_bytes

    def _image(self, space: WantedSpace, want: Wanted, part: int, *, verify: bool, large: bool) -> PartImage:
        """A part's image, if it is the one that the version was sealed with."""
        folder = self._folder(space, want, part)
        image = open_part(folder, verify=verify, offsets=True, large=large)
        if image.digest != want.images.get(part):
            raise NotFound(
                f"image file {folder / MANIFEST}: its digest is {image.digest}, version {want.version} was sealed "
                f"with {want.images.get(part)}; build the version again"
            )
        return image

    def _mended(self, space: WantedSpace, want: Wanted, tried: _Tried, parts: Sequence[int]) -> str:
        """What is done about damaged parts, in words that follow those of the damage."""
        if self._remake is None:
            return ""
        if tried.remaking is not None and not tried.again_at:
            tried.again_at = tried.at + min(self._retry_s * 2.0 ** min(tried.begun - 1, _DOUBLINGS), _LONGEST_REST_S)
        elif tried.remaking is None or tried.at >= tried.again_at:
            tried.remaking = self._remake(space, want, parts, self.wake)
            tried.begun, tried.again_at = tried.begun + 1, 0.0
        return f" ({tried.remaking})"

    def _refuse(self, space: WantedSpace, want: Wanted, cause: str) -> None:
        self._holdings.refused(space.space_id, want, cause)
        logger.error("version_refused", extra={"space": space.name, "version": want.version, "cause": cause})
        self._changed()
