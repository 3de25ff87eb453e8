"""Filters over the partitions of a version: index ranges, scans, cached results.

Syntax and binding belong to `asterism_model.filters`.
"""
