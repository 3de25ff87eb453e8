"""Tasks that read a published version again, in a child process: audit, table export.
Nothing here writes to what it reads; starting these tasks belongs to `storaged.task_runner`."""
