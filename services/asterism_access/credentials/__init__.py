"""Credentials of callers: API keys, tickets, sessions, tokens and certificates.

What a verified caller may do belongs to the package above.
"""
