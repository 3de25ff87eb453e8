"""graphd answers trainers: it splits requests over partitions, asks storageds and merges replies.
No state of the cluster belongs here: routes and totals are caches of metad's replies."""
