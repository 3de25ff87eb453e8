"""Start a graphd: ``python -m graphd --listen 127.0.0.1:9669 --metad metad:9559``."""

from __future__ import annotations

import sys

from asterism_daemonkit import logs
from asterism_daemonkit.critical_threads import exit_on_lost_threads
from asterism_daemonkit.rpc.grpc_client import RemoteTransport
from asterism_daemonkit.rpc.grpc_server import FIXED_WINDOW_OPTIONS
from asterism_daemonkit.rpc.tcp_client import TcpTransport
from asterism_io.fast_exit import skip_last_collections
from asterism_io.termination_signals import TerminationSignals
from asterism_proto.errors import AsterismError
from graphd.app import Graphd
from graphd.settings import GraphdSettings


def main(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT; return 2 if a setting is wrong or a port is taken."""
    termination = TerminationSignals()
    try:
        settings = GraphdSettings.read(arguments)
        exit_on_lost_threads()
        logs.configure(daemon="graphd", json=settings.log_json, level=settings.log_level)
        tls, access_control = settings.tls(), settings.access_control("graphd")
        client_tls = None if tls is None else tls.client
        credentials = None if access_control is None else access_control.ticket
        graphd = Graphd(
            settings,
            RemoteTransport(
                settings.metad,
                role="metad",
                options=FIXED_WINDOW_OPTIONS,
                tls=client_tls,
                credentials=credentials,
            ),
            lambda address, tally: TcpTransport(
                address,
                RemoteTransport(
                    address, tally, role="storaged", tls=client_tls, credentials=credentials
                ),
                tally,
                tls=client_tls,
                credentials=credentials,
            ),
            tls=tls,
            access_control=access_control,
        )
        graphd.start()
        graphd.open_ports()
    except AsterismError as error:
        print(f"graphd: {error.message}", file=sys.stderr)
        return 2
    termination.wait()
    graphd.stop()
    return 0


if __name__ == "__main__":
    skip_last_collections()
    sys.exit(main(sys.argv[1:]))
