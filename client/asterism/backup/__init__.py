"""Backups of graph spaces and their restoration.

Needs fsspec (``asterism-graph[ingest]``). The layout of a backup belongs to
`asterism_model.backup_manifest`; storageds move the bytes.
"""

from asterism.backup.create import BackupInfo, backup
from asterism.backup.restore import restore

__all__ = ["BackupInfo", "backup", "restore"]
