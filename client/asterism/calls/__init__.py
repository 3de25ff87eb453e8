"""Calls of a graph, one flat module per family, and what they share: validation, decoding.

Records that calls return belong to `asterism.records`.
"""
