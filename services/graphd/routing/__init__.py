"""Routing: locations and totals of partitions, split and merge, dispatch to hosts.
Sampling operators do not belong here."""
