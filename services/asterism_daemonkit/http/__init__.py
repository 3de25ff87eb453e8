"""HTTP of every daemon: server, probes, errors, API documentation and the routes of jobs.

Routes of one daemon belong to its own package.
"""
