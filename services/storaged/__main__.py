"""Entry point: ``python -m storaged --data /var/lib/asterism --metad metad:9559``."""

from __future__ import annotations

import sys

from asterism_daemonkit import logs
from asterism_daemonkit.critical_threads import exit_on_lost_threads
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import FIXED_WINDOW_OPTIONS
from asterism_graphkit.compile.jit import load_runtime
from asterism_io.fast_exit import skip_last_collections
from asterism_io.termination_signals import TerminationSignals
from asterism_proto.errors import AsterismError
from storaged.app import Storaged
from storaged.settings import StoragedSettings
from storaged.tasks.fork_server import ForkServer


def main(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT and return the exit status.

    The status is 2 if a setting is invalid, a port is taken or the data folder is unavailable.
    """
    termination = TerminationSignals()
    try:
        settings = StoragedSettings.read(arguments)
        load_runtime()
        fork_server = ForkServer()
        fork_server.fork()  # Must precede any thread.
        exit_on_lost_threads()
        logs.configure(daemon="storaged", json=settings.log_json, level=settings.log_level)
        tls, access_control = settings.tls(), settings.access_control("storaged")
        storaged = Storaged(
            settings,
            RemoteTransport(
                settings.metad,
                role="metad",
                options=FIXED_WINDOW_OPTIONS,
                tls=None if tls is None else tls.client,
                credentials=None if access_control is None else access_control.ticket,
            ),
            fork_server=fork_server,
            tls=tls,
            access_control=access_control,
        )
        storaged.open_ports()
        storaged.start()
    except AsterismError as error:
        print(f"storaged: {error.message}", file=sys.stderr)
        return 2
    termination.wait()
    storaged.stop()
    return 0


if __name__ == "__main__":
    skip_last_collections()
    sys.exit(main(sys.argv[1:]))
