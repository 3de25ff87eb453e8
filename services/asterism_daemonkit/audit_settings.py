"""Settings of the audit log, shared by metad, graphd and storaged."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, Field

from asterism_access.audit_log import AuditLog, RecordCallback, ignore_record


class AuditSettings(BaseModel):
    """Settings of a daemon's audit log."""

    audit_file: str = ""
    """File of the audit log, as JSON lines; each daemon needs its own. Empty: none."""
    audit_max_mib: int = Field(default=64, ge=1, le=1 << 20)
    """Size in MiB at which the audit log is rotated."""
    audit_files: int = Field(default=10, ge=1, le=1000)
    """Files of the audit log that are kept, with the one that is written."""
    audit_required: bool = False
    """If true, refuse changes while the audit log cannot be written, such as on a full disk.

    Records then wait for the disk. If false, they go to the daemon's own log meanwhile."""

    def open_audit_log(self, on_record: RecordCallback = ignore_record) -> AuditLog | None:
        """Return the open audit log; None without one.

        Parameters
        ----------
        on_record : callable
            Called for each record, with whether it was written.

        Raises
        ------
        InvalidRequest
            If the file cannot be written, or another process writes it.
        """
        if not self.audit_file:
            return None
        return AuditLog(
            Path(self.audit_file),
            self.audit_max_mib << 20,
            self.audit_files,
            required=self.audit_required,
            on_record=on_record,
        )
