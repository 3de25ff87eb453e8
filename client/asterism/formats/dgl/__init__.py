"""Readers of DGL's chunked graph format.

Writing that format belongs to `asterism.export`.
"""
