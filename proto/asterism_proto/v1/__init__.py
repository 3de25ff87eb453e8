"""Version 1 of the messages, generated from the .proto files beside it (``make stubs``)."""
