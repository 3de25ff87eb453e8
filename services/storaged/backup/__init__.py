"""Backup and restoration of partitions: streams of blocks, and one task over partitions.
Nothing here knows a daemon or metad: `storaged.task_runner` runs these tasks in a thread."""
