"""The wire contract: messages, methods, frames of arrays, errors.

Nothing here uses a socket, a file or a clock, or any other package of Asterism."""
