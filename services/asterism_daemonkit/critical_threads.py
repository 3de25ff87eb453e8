"""Threads that a daemon cannot run without: if one of them is lost, the process exits."""

from __future__ import annotations

import logging
import os
import threading

logger = logging.getLogger(__name__)

EXIT_STATUS = 70
"""Exit status (EX_SOFTWARE), after which a supervisor restarts the daemon."""
_GRPC_THREAD = "(_serve)"
"""Substring of the name of the thread that polls for calls of a gRPC server.

Without this thread, the port accepts calls and never replies."""


def exit_on_lost_threads() -> None:
    """Install a hook that exits the process if a critical thread is lost.

    That is any thread that ends for lack of memory, and the gRPC server's thread with any error.
    The threads of daemons handle their own errors. If one still ended by an exception, the
    daemon would report itself as ready and hang. Exiting at once is safe: everything
    acknowledged is on disk."""
    previous = threading.excepthook

    def hook(args: threading.ExceptHookArgs, /) -> None:
        previous(args)
        name = args.thread.name if args.thread is not None else "unknown"
        if issubclass(args.exc_type, MemoryError) or _GRPC_THREAD in name:
            logger.critical(
                "thread_lost",
                extra={"lost": name, "cause": f"{args.exc_type.__name__}: {args.exc_value}"},
            )
            os._exit(EXIT_STATUS)

    threading.excepthook = hook
