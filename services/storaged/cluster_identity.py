"""The cluster that a data folder belongs to; tasks of another cluster's metad are refused."""

from __future__ import annotations

from pathlib import Path

from asterism_daemonkit.daemon_identity import FILE_NAME as IDENTITY
from asterism_daemonkit.daemon_identity import REWRITE_REMEDY
from asterism_io.durable_files import write_durably
from asterism_proto.errors import Conflict, Corrupt

_UNREADABLE = "(unreadable)"


class ClusterIdentity:
    """The cluster of a data folder: the first one that it joined.

    Parameters
    ----------
    file : Path
        File that stores the cluster id.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.cluster_id = (
            (file.read_text(errors="replace").strip() or _UNREADABLE) if file.exists() else ""
        )
        """Id of the cluster; empty before the first heartbeat."""
        self.fault = ""
        """Reason why metad's last reply was refused; empty if it was accepted."""

    def check_identity(self) -> None:
        """Refuse a folder that has data but no uuid or no cluster id.

        With a new uuid, or as a member of another cluster, the host would be ordered to remove its
        data.

        Raises
        ------
        Corrupt
            One of the two identity files is missing.
        """
        identity = self._file.with_name(IDENTITY)
        if self.cluster_id and not identity.exists():
            raise Corrupt(
                f"{identity}: missing, though the folder has data of the cluster "
                f"{self.cluster_id}; restore it from a backup, or {REWRITE_REMEDY}; "
                "to join a cluster as a new host, start with an empty folder"
            )
        spaces = self._file.with_name("spaces")
        if not self.cluster_id and spaces.is_dir() and any(spaces.iterdir()):
            raise Corrupt(
                f"{self._file}: missing, though {spaces} has data: any metad could have that "
                "data removed; write the id of the data's cluster into the file (`cluster` in "
                "/status of its metad); to join a cluster as a new host, start with an empty "
                "folder"
            )

    def check(self, cluster_id: str) -> None:
        """Accept a reply of a cluster, and join the cluster if the folder has none yet.

        Raises
        ------
        Conflict
            The folder belongs to another cluster.
        """
        if not self.cluster_id and cluster_id:
            write_durably(self._file, cluster_id.encode())
            self.cluster_id = cluster_id
        self.fault = (
            ""
            if self.cluster_id == cluster_id
            else self.mismatch_error(f"metad belongs to the cluster {cluster_id or 'none'}")
        )
        if self.fault:
            raise Conflict(self.fault)

    def mismatch_error(self, reason: str) -> str:
        """Return the error message for a metad of another cluster, with the remedy."""
        return (
            f"data={self._file.parent}: belongs to the cluster {self.cluster_id or 'none'}, but "
            f"{reason}; its tasks are rejected. Set `metad` to the address of the metad of this "
            "cluster, or start that metad with its own data folder. If its folder is lost, run "
            f"`asterism metad adopt --cluster {self.cluster_id or 'ID'}`. To join another "
            "cluster, start this storaged with an empty data folder"
        )
