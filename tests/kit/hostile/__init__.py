"""Attacks on open ports: raw bytes, hostile requests, slow and silent callers, and their target."""
