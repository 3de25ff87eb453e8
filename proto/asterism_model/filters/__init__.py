"""Filters: their syntax, and their binding to the columns of a schema.
Evaluation over arrays belongs to `asterism_graphkit.evaluate`."""
