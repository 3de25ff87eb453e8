"""Handlers of the Graph service: they decode requests, run operators and encode replies.
The operators themselves belong to `graphd.operators`."""
