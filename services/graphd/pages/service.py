"""Service of the web pages: routers for an HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fastapi import APIRouter

from asterism_daemonkit.rpc.call_context import Handler
from asterism_proto.transport import Transport
from graphd.pages import access as access_routes
from graphd.pages import files, routes
from graphd.pages.addresses import PageAddresses
from graphd.pages.catalog_reader import PageData, ReadHistogram
from graphd.pages.node_inspector import NodeReader
from graphd.pages.rates import RateMonitor
from graphd.pages.sign_in import PageSignIn

ACCESS_PAGE = "/ui/access"
"""Path of the page of access control."""


class Pages:
    """Web pages of an HTTP server.

    Parameters
    ----------
    daemon : str
        Name of the daemon that serves the pages.
    metad : Transport
    read_histogram : callable
        Reads the weight histogram of a type.
    storaged : callable
        Returns the transport to a storaged by uuid.
    handlers : mapping
        Handlers of the Graph and Catalog services in this process, by method path. Nodes are read
        with them.
    rates : RateMonitor
        Rates of the server.
    missing : callable
        Returns the reasons why the daemon cannot serve yet.
    catalog : Transport, optional
        Carries calls of the Catalog service with the rights of the caller of a route. Default:
        they go to metad with those of this process.
    may_read_logs : callable, optional
        Returns whether the caller of a route may read the logs of daemons. Default: every caller.
    sign_in : PageSignIn, optional
        Sign-in of people. Default: there is none.
    access : Transport, optional
        Carries calls of the Access service with the rights of the caller of a route. Default:
        there is no page of access control.
    """

    def __init__(
        self,
        *,
        daemon: str,
        metad: Transport,
        read_histogram: ReadHistogram,
        storaged: Callable[[str], Transport],
        handlers: Mapping[str, Handler],
        rates: RateMonitor,
        missing: Callable[[], list[str]],
        catalog: Transport | None = None,
        may_read_logs: Callable[[], bool] = lambda: True,
        sign_in: PageSignIn | None = None,
        access: Transport | None = None,
    ) -> None:
        page_data = PageData(
            metad, read_histogram, storaged, catalog=catalog, may_read_logs=may_read_logs
        )
        without = () if access is not None else (ACCESS_PAGE,)
        addresses = PageAddresses(files.app_script(), page_data, without=without)
        self.sign_in = None if sign_in is None else sign_in.sign_in
        """What the HTTP server needs to know of the sign-in; None if there is none."""
        self.routers: list[APIRouter] = [
            routes.router(page_data, rates, NodeReader(handlers), daemon=daemon, missing=missing),
            *([] if access is None else [access_routes.router(access)]),
            *([] if sign_in is None else [sign_in.router]),
            files.router(
                addresses.exists, sign_in_page="" if sign_in is None else sign_in.sign_in.page
            ),
        ]
        """Routes of data, then those of the page, which serves all other paths below ``/ui``."""
