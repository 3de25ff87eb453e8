"""Threads that a daemon cannot do without: where one of them is lost, the process ends."""

from __future__ import annotations

import logging
import os
import threading

logger = logging.getLogger(__name__)

EXIT_STATUS = 70
"""Exit status (EX_SOFTWARE): a supervisor starts the daemon again."""
_GRPC_THREAD = "(_serve)"
"""In the name of the thread that polls for the calls of a gRPC server: without it the port accepts
calls and answers none.
"""


def exit_on_lost_threads() -> None:
    """End the process when a thread is lost for want of memory, or the gRPC server's thread for any
    reason.

    Threads of daemons handle errors of their own. One that ends by an exception nevertheless would
    leave a daemon that says it is ready and hangs. Ending at once is a kill: what was acknowledged
    is on the disk."""
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
