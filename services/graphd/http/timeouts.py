"""Limits of requests over HTTP."""

MAX_TIMEOUT_S = 600.0
"""Longest time that a request may take, in seconds."""
