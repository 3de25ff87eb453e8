"""The three daemons in one process, joined by in-process calls: what `asterism serve` and
`asterism.open` start.
"""
