"""Asterism: sample from graphs that are larger than memory."""
