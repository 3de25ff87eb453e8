"""Handlers of the Store service: they decode requests and call `storaged.sampling`.

Sampling itself does not belong here.
"""
