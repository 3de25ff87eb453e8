"""The three daemons in one process, joined by in-process calls: `asterism serve`, `asterism.open`.
What a daemon does belongs to its own package; this one composes them."""
