"""Readers of graph files: each yields chunks of columns in bounded memory. They know no service."""
