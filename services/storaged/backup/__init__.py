"""Backup and restore of partitions: streams of blocks, and one task over partitions.

Independent of daemons and metad: `storaged.tasks.task_runner` runs these tasks in a thread.
"""
