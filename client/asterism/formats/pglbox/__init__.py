"""Readers of PGLBox's configurations and of the text files that they name.

Batches of a configuration belong to `asterism.pglbox`.
"""
