"""Handler of `Query` that imports the parsers of statements when the first statement arrives.

The imports and the parsers take a tenth of a second, and few programs that open a folder run
statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.routing.routes import SpaceRoute

if TYPE_CHECKING:
    from graphd.query.service import QueryService


class DeferredQueryService:
    """A `QueryService` that is created at the first use; same parameters."""

    def __init__(
        self, handlers: Mapping[str, Handler], space_of: Callable[[str, CallContext], SpaceRoute]
    ) -> None:
        self._handlers = handlers
        self._space_of = space_of

    @cached_property
    def service(self) -> QueryService:
        """The service. Threads that need it first at the same time may create several."""
        from graphd.query.service import QueryService

        return QueryService(self._handlers, self._space_of)

    def prepare(self) -> None:
        """Build the parsers, so that the first statement does not wait for them."""
        from graphd.query import euler_parser, ngql_parser

        ngql_parser.build_parser()
        euler_parser.build_parser()

    def query(
        self, request: Frame[graphd_pb.QueryRequest], call: CallContext
    ) -> Frame[graphd_pb.QueryReply]:
        """Run statements and return the table of the last one."""
        return self.service.query(request, call)
