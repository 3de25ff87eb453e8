"""Standalone: the three daemons in one process, for `asterism serve` and `asterism.open`.
The logic of a daemon belongs to its own package; this package composes them."""
