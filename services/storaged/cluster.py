"""The one cluster that a folder belongs to: a metad that lost its catalog must not have this folder's data removed."""

from __future__ import annotations

from pathlib import Path

from asterism_proto.errors import Conflict
from daemonkit.identity import write_durably


class Cluster:
    """The cluster of a data folder: the first that is heard of, for its life.

    Parameters
    ----------
    file : Path
        Where it is written down.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = file.read_text(errors="replace").strip() if file.exists() else None
        self.fault = ""
        """Why metad's last word was not taken over; empty where it was."""

    def check(self, said: str) -> None:
        """Take a word of the cluster ``said``, or refuse it with Conflict where the folder belongs to another one."""
        if self._known is None and said:
            write_durably(self._file, said.encode())
            self._known = said
        if (self._known or "") != said:
            self.fault = (
                f"the folder {self._file.parent} belongs to the cluster {self._known}, the metad that answers to {said or 'none'}: nothing is taken "
                f"over from it. Give metad its own folder back, or say where this storaged's metad is; to join the other cluster, start with an "
                f"empty folder"
            )
            raise Conflict(self.fault)
        self.fault = ""
