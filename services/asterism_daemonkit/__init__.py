"""The floor under every daemon: calls and deadlines, servers, channels, beats, logs, metrics, the
HTTP door.
"""
