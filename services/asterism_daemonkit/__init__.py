"""Infrastructure of all daemons: servers, clients, deadlines, settings, logs, shared routes.

Code that only one daemon needs belongs to its own package."""
