"""Builds, in a child process: from a checkpoint of blocks to tables and partition images.

Starting and stopping builds belongs to `storaged.tasks.task_runner`, file formats belong to
`storaged.store`.
"""
