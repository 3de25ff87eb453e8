"""Jobs as values (`model`), decisions as a pure function (`machine`), effects in a thin shell
(`driver`).
"""
