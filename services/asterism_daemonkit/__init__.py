"""Infrastructure of all daemons: servers, clients, deadlines, heartbeats, settings, logs.

Nothing here depends on graphs. Code that only one daemon needs belongs to its own package."""
