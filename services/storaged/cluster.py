"""The one cluster that a folder belongs to: a metad that lost its catalog must not have this folder's data removed."""

from __future__ import annotations

from pathlib import Path

from asterism_proto.durable import write_durably
from asterism_proto.errors import Conflict, Corrupt
from daemonkit.identity import NAME as IDENTITY
from daemonkit.identity import WRITE_AGAIN

_UNREADABLE = "(unreadable)"


class Cluster:
    """The cluster of a data folder: the first that is heard of, for its life.

    Parameters
    ----------
    file : Path
        Where it is written down.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.known = (file.read_text(errors="replace").strip() or _UNREADABLE) if file.exists() else ""
        """Its id; empty before any was heard of."""
        self.fault = ""
        """Why metad's last word was not taken over; empty where it was."""

    def check_identity(self) -> None:
        """Refuse a folder that is of a cluster, but has lost the uuid that the cluster knows its parts by: as a new host it would remove them."""
        identity = self._file.with_name(IDENTITY)
        if self.known and not identity.exists():
            raise Corrupt(
                f"{identity}: missing, though the folder has data of the cluster {self.known}; restore it from a backup, or {WRITE_AGAIN}; "
                "to join a cluster as a new host, start with an empty folder"
            )
        spaces = self._file.with_name("spaces")
        if not self.known and spaces.is_dir() and any(spaces.iterdir()):
            raise Corrupt(
                f"{self._file}: missing, though {spaces} has data: any metad that answers could have that data removed; write the id of the "
                "data's cluster into the file (`cluster` in /status of its metad); to join a cluster as a new host, start with an empty folder"
            )

    def check(self, said: str) -> None:
        """Take a word of the cluster ``said``, or refuse it with Conflict where the folder belongs to another one."""
        if not self.known and said:
            write_durably(self._file, said.encode())
            self.known = said
        self.fault = "" if self.known == said else self.other(f"the metad that answers belongs to the cluster {said or 'none'}")
        if self.fault:
            raise Conflict(self.fault)

    def other(self, why: str) -> str:
        """What is to be said of a metad that this folder does not belong to."""
        return (
            f"the folder {self._file.parent} belongs to the cluster {self.known or 'none'}, but {why}: nothing is taken over from it. Give metad its "
            f"own folder back, or say where this storaged's metad is; where its folder is lost, `asterism metad adopt --cluster "
            f"{self.known or 'ID'}` makes the new catalog the one to follow; to join another cluster, start with an empty folder"
        )
