"""The three daemons in one process, for `asterism serve` and `asterism.open`.
What a daemon does belongs to its own package; this one composes them."""
