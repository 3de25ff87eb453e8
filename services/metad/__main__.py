"""Entry point of ``python -m metad``: run a metad until SIGTERM or SIGINT."""

from __future__ import annotations

import logging
import sys

from asterism_daemonkit import logs
from asterism_daemonkit.critical_threads import exit_on_lost_threads
from asterism_io.fast_exit import skip_last_collections
from asterism_io.termination_signals import TerminationSignals
from asterism_proto.errors import AsterismError
from metad.app import Metad
from metad.settings import MetadSettings

logger = logging.getLogger("metad")


def main(arguments: list[str]) -> int:
    """Run a metad and return its exit status: 0 after a signal, 2 if it cannot start."""
    termination = TerminationSignals()
    try:
        settings = MetadSettings.read(arguments)
        exit_on_lost_threads()
        logs.configure(daemon="metad", json=settings.log_json, level=settings.log_level)
        metad = Metad(settings, tls=settings.tls(), access_control=settings.access_control("metad"))
    except AsterismError as error:
        print(f"metad: {error.message}", file=sys.stderr)
        return 2
    try:
        metad.start()
        metad.open_ports()
        logger.info(
            "daemon_started",
            extra={
                "grpc_port": metad.grpc_port,
                "http_port": metad.http_port,
                "data": str(settings.data),
            },
        )
        termination.wait()
        logger.info("daemon_stopping")
    except AsterismError as error:
        print(f"metad: {error.message}", file=sys.stderr)
        return 2
    finally:
        metad.stop()
    return 0


if __name__ == "__main__":
    skip_last_collections()
    sys.exit(main(sys.argv[1:]))
