"""Tasks of a storaged: assignments by metad or its own repair, processes, and their fork server.

What a task computes belongs to `storaged.build` and `storaged.version_tasks`.
"""
