"""storaged stores partitions: blocks as loaded, builds of tables and images, sampling from images.
Merging of replies of several hosts belongs to graphd, scheduling of tasks to metad."""
