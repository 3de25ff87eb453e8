"""Tasks that metad assigns: their processes and the server that forks them.

What a task computes belongs to `storaged.build` and `storaged.version_tasks`.
"""
