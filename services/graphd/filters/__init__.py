"""Filters of requests: what a filtered operator reads in place of the whole version.

Syntax and binding belong to `asterism_model.filters`.
"""
