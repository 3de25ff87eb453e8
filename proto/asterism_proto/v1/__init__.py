"""Version 1 of the messages, generated from the .proto files beside it (``make stubs``).
Code that is written by hand does not belong here."""
