"""Readiness probe of a daemon, for health checks of containers: it needs no credential.

``python -m asterism_daemonkit.readiness_probe graphd`` requests ``/readyz`` on this host. Port and
certificate come from the environment variables of the daemon. With TLS, the daemon must show
exactly the certificate in its file, which also serves as that of the probe. The module imports the
standard library only, because health checks run every few seconds."""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping

TIMEOUT_S = 4.0
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}


def ready_url(daemon: str, environment: Mapping[str, str]) -> str:
    """Return the URL of ``/readyz`` of the daemon on this host.

    Raises
    ------
    LookupError
        If the environment has no usable address.
    """
    name = f"ASTERISM_{daemon.upper()}_HTTP_LISTEN"
    host, _, port = environment.get(name, "").rpartition(":")
    if not host or not port.isdigit() or not int(port):
        raise LookupError(
            f"{name}={environment.get(name, '')!r}: expected host:port of the daemon's HTTP port"
        )
    scheme = "https" if environment.get(f"ASTERISM_{daemon.upper()}_TLS_CERT") else "http"
    return f"{scheme}://{_WILDCARDS.get(host, host)}:{port}/readyz"


def certificate_context(daemon: str, environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the context of a connection to the daemon; None without TLS."""
    cert = environment.get(f"ASTERISM_{daemon.upper()}_TLS_CERT", "")
    if not cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The certificate itself is trusted, and no other, so its names do not matter.
    context.check_hostname = False
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cert)
    context.load_cert_chain(cert, environment.get(f"ASTERISM_{daemon.upper()}_TLS_KEY") or None)
    return context


def missing(daemon: str, environment: Mapping[str, str]) -> str:
    """Return why the daemon is not ready; empty if it is."""
    try:
        url, context = ready_url(daemon, environment), certificate_context(daemon, environment)
        handlers = [
            urllib.request.ProxyHandler({}),
            *([] if context is None else [urllib.request.HTTPSHandler(context=context)]),
        ]
        urllib.request.build_opener(*handlers).open(url, timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError as reply:
        with reply:
            return "; ".join(json.load(reply)["missing"]) or f"HTTP status {reply.code}"
    except (LookupError, OSError, ValueError) as error:
        return str(error)
    return ""


def main(arguments: list[str]) -> int:
    """Return 0 if the daemon is ready, 1 if it is not, and 2 if the arguments are wrong."""
    if len(arguments) != 1:
        print("usage: python -m asterism_daemonkit.readiness_probe DAEMON", file=sys.stderr)
        return 2
    # It reads the variables of a daemon without the imports of its settings.
    reason = missing(arguments[0], os.environ)  # noqa: TID251
    if reason:
        print(f"{arguments[0]}: {reason}", file=sys.stderr)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
