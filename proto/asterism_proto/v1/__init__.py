"""Version 1 of the messages, generated from the .proto files here (``make stubs``).

Hand-written code does not belong here."""
