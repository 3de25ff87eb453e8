"""graphd splits requests of trainers over partitions, asks storageds, merges replies.
No state of the cluster belongs here: routes and totals are caches of metad's replies."""
