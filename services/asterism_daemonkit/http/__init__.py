"""HTTP servers of daemons: checks of requests, turns, probes, errors and shared routes.

Routes of one daemon belong to its own package.
"""
