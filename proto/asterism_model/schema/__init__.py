"""Schemas: node and edge types, features, weight tables, time columns, indexes.

Values that belong to a graph, such as counts and totals, do not belong here.
"""
