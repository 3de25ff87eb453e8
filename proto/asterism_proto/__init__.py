"""The wire contract: messages, frames of arrays, schema records, errors.

Depends on nothing of ours. Every daemon and the client stand on it; nothing here knows a socket, a
file or a clock."""
