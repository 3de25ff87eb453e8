"""Parts of every daemon: deadlines, servers and clients, heartbeats, settings, logs, metrics.
Nothing here knows a graph; what only one daemon needs belongs to its own package."""
