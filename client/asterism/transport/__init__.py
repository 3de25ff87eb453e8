"""How requests reach a service: gRPC, direct and embedded; retries, hedging, waiting.

What a request contains belongs to `asterism.calls`.
"""
