"""Credentials of callers: API keys, tickets, sessions, tokens; certificates for development.

What a verified caller may do belongs to `asterism_access.roles` and `asterism_access.guard`."""
