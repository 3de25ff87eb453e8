"""What reads a published version again: its audit, and the export of its tables.

``python -m storaged.version_tasks TASK.json`` is a child process of `storaged.task_runner`, as a
build's is: its memory and its faults are its own. Nothing in here writes to what it reads."""
