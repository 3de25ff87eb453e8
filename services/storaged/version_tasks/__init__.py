"""Tasks that read a published version, in a child process: audit and table export.

They never write to the data they read; `storaged.tasks.task_runner` starts them.
"""
