"""I/O that client and daemons share: Unix sockets, remote storage, buffers.
The wire format belongs to `asterism_proto`, daemons' servers to `asterism_daemonkit`."""
