"""One module per family of sampling and read operators, above `graphd.routing`.

Decoding of requests belongs to `graphd.api`.
"""
