"""Split trainers' requests over partitions, call storageds and merge their replies.
No cluster state belongs here: routes and totals are caches of metad's replies."""
