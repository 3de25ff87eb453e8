"""Making damaged images of served versions again, from the blocks that they were built of.

A version is a function of its loads, which the graph database keeps: a build of the same parts at the same cut comes to
the same bytes, in a folder beside; if its digest is the one that the version was sealed with, it takes the damaged one's place.
Nobody orders this, and nothing of it is reported but why a version is not served. `storaged.opening` asks for it.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Sequence

from asterism_proto.durable import make_folder, sync_folder
from asterism_proto.errors import AsterismError
from storaged.build.marks import part_folder
from storaged.folders import Folders
from storaged.holdings import Wanted, WantedSpace
from storaged.orders import FINISHED, REMAKE, Order, Run
from storaged.store.disk import refusal

logger = logging.getLogger(__name__)

_LOOK_S = 0.2

Commits = Callable[[WantedSpace], Sequence[tuple[int, int]]]
"""(commit, load) of all that was committed to a space, in commit order."""


class Remaking:
    """One version whose damaged parts are made again, in a thread that watches over it."""

    def __init__(self, space: WantedSpace, want: Wanted, parts: Sequence[int]) -> None:
        self.space, self.want, self.parts = space, want, tuple(parts)
        self.over = False
        self.fault = ""
        """Once it is over: why the parts are not what they were; empty where they are."""

    def __str__(self) -> str:
        """What there is to say of it to whoever asks why the version is not served."""
        what = f"part {self.parts[0]}" if len(self.parts) == 1 else f"parts {', '.join(map(str, self.parts))}"
        if not self.over:
            return f"{what} being made again from the loads up to commit {self.want.cut}"
        return f"{what} could not be made again: {self.fault}" if self.fault else f"{what} made again"


class Remaker:
    """Makes images again.

    Parameters
    ----------
    begin : callable
        Carries an order out, beside those of metad.
    wants : callable
        Whether a version of a space is still to be served.
    commits : callable
        Asks metad what was committed.
    folders : Folders
    """

    def __init__(self, *, begin: Callable[[Order], Run], wants: Callable[[int, Wanted], bool], commits: Commits, folders: Folders) -> None:
        self._begin, self._wants, self._commits, self._folders = begin, wants, commits, folders
        self._under_way: frozenset[tuple[int, int]] = frozenset()
        """(space, job) of the builds whose parts are made again."""
        self._lock = threading.Lock()

    def busy(self, space_id: int) -> set[int]:
        """The jobs of a space whose folders are in use."""
        return {job_id for space, job_id in self._under_way if space == space_id}

    def start(self, space: WantedSpace, want: Wanted, parts: Sequence[int], ended: Callable[[], None]) -> Remaking:
        """Begin with these parts of a version; ``ended`` is called when it is over."""
        remaking = Remaking(space, want, parts)
        logger.warning("image_remade", extra={"space": space.name, "version": want.version, "parts": list(parts)})
        threading.Thread(target=self._run, args=(remaking, ended), name=f"remake-{want.job_id}", daemon=True).start()
        return remaking

    def _run(self, remaking: Remaking, ended: Callable[[], None]) -> None:
        key = remaking.space.space_id, remaking.want.job_id
        with self._lock:
            self._under_way |= {key}
        try:
            remaking.fault = self._made(remaking)
        except AsterismError as error:
            remaking.fault = error.message
        except OSError as error:
            remaking.fault = refusal(error, self._folders.data).message
        except Exception as error:  # whoever asks why the version is not served has to hear of it
            logger.exception("remaking_crashed")
            remaking.fault = repr(error)
        if remaking.fault:
            logger.error("remaking_failed", extra={"space": remaking.space.name, "version": remaking.want.version, "cause": remaking.fault})
            shutil.rmtree(self._folders.checkpoint(*key), ignore_errors=True)
        with self._lock:
            self._under_way -= {key}
        remaking.over = True
        ended()

    def _made(self, remaking: Remaking) -> str:
        space, want = remaking.space, remaking.want
        committed = [(commit, load) for commit, load in self._commits(space) if commit <= want.cut]
        run = self._begin(
            Order(
                task_id=0,
                job_id=want.job_id,
                attempt=0,
                kind=REMAKE,
                space_id=space.space_id,
                space=space.name,
                schema=space.schema,
                parts=remaking.parts,
                cut=want.cut,
                loads=tuple(load for _, load in committed),
                commits=tuple(commit for commit, _ in committed),
                indexes=want.indexes,
            )
        )
        while not run.done.wait(_LOOK_S):
            if not self._wants(space.space_id, want):
                run.cancel()
        if run.progress.state != FINISHED:
            return run.progress.cause or "it was stopped"
        difference = _difference({image["part"]: image["digest"] for image in run.progress.result["images"]}, want)
        if not difference:
            self._put_in_place(remaking)
        return difference

    def _put_in_place(self, remaking: Remaking) -> None:
        """Let the new images be those of the version. A crash between leaves a part without one, which is made again."""
        space_id, job_id = remaking.space.space_id, remaking.want.job_id
        build, remade = self._folders.build(space_id, job_id), self._folders.remade(space_id, job_id)
        make_folder(build / "parts")
        for part in remaking.parts:
            place = part_folder(build, part)
            shutil.rmtree(place, ignore_errors=True)  # unlinked: whoever has it mapped goes on
            part_folder(remade, part).rename(place)
        sync_folder(build / "parts")
        shutil.rmtree(remade, ignore_errors=True)


def _difference(made: dict[int, str], want: Wanted) -> str:
    """How images that were made again differ from those that a version was sealed with; empty where they do not."""
    for part, digest in sorted(made.items()):
        if digest != want.images.get(part):
            return (
                f"from the loads up to commit {want.cut}, part {part} comes to digest {digest}, version {want.version} was sealed with "
                f"{want.images.get(part)}: what was loaded is damaged too, or another release built it; restore the space from a backup, or load anew"
            )
    return ""
