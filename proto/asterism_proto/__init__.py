"""The wire contract: messages, methods, frames of arrays, errors.
Nothing here knows a socket, a file or a clock, or any other package of Asterism."""
