"""Backups of spaces, and spaces made of backups: storageds move the bytes, the client begins it and
seals it.

`create` asks for a backup and writes its record once every part is there; `restore` makes a space
of a record and waits until its data is back. What lies where is in
`asterism_model.backup_manifest`. Needs fsspec (``asterism[ingest]``)."""

from asterism.backup.create import BackupInfo, backup
from asterism.backup.restore import restore

__all__ = ["BackupInfo", "backup", "restore"]
