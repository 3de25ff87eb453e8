"""Calls between processes: gRPC, the binary endpoint, fair turns, and the context of a call.

HTTP belongs to `asterism_daemonkit.http`.
"""
