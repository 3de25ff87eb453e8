"""Where partitions are and what they hold: routes, totals, split and merge, dispatch.
Sampling operators do not belong here."""
