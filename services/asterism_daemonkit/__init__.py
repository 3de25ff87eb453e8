"""Parts of every daemon: deadlines, servers, clients, heartbeats, settings, logs.
Nothing here knows a graph; what only one daemon needs belongs to its own package."""
