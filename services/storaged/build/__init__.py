"""The build, in a child process: from a checkpoint of blocks to tables and images.
Starting and stopping builds belongs to `storaged.task_runner`, file formats to `storaged.store`."""
