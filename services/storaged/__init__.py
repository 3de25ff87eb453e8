"""storaged stores partitions: it keeps blocks, builds images and samples from them.
Merging of replies of several hosts belongs to graphd, scheduling of tasks to metad."""
