"""A build: the passes that turn a checkpoint of blocks into tables and images, in a process of its
own.

`storaged.task_runner` starts ``python -m storaged.build TASK.json``, reads its progress lines and
reaps it."""
