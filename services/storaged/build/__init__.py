"""The build: passes that turn a checkpoint of blocks into tables and images, in a child process.
Starting and stopping builds belongs to `storaged.task_runner`, file formats to `storaged.store`."""
