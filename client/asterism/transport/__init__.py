"""Transports of requests: gRPC, direct and embedded, with retries, hedging and waiting.
What a request contains belongs to `asterism.calls`."""
