"""Backups and restores of parts: `blocks` (the stream of what was loaded), `transfer` (one task,
part after part).

Called by `storaged.task_runner` in a thread of the owner, for blocks are the owner's; nothing here
knows a daemon or metad."""
