"""Layers around handlers: the limits of the caller, and the audit log.

The audit layer is the outermost, so that it records refused calls too. Between the two are the
checks of roles: a caller without the role uses up no limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from google.protobuf import text_format
from google.protobuf.message import Message

from asterism_access.audit_log import OK, AuditLog
from asterism_access.call_costs import actual_cost, expected_cost
from asterism_access.limits import LimitTable
from asterism_access.principals import Principal, PrincipalKind
from asterism_access.requirements import REQUIREMENTS, Scope
from asterism_proto.errors import AsterismError, Forbidden, Internal, Unauthenticated
from asterism_proto.framing import Frame
from asterism_proto.methods import Method
from asterism_proto.transport import Content
from asterism_proto.v1 import metad_pb2 as metad_pb

_MIN_RECORD_WAIT_S = 1.0
"""Seconds that a record of an executed call may wait, even if the call's time is up."""
_MAX_DETAIL_BYTES = 4096
"""Bytes of a request up to which its fields are in the audit log."""


class Call(Protocol):
    """Context of a call, as far as the layers need it."""

    @property
    def principal(self) -> Principal:
        """Caller."""

    @property
    def deadline(self) -> float:
        """Deadline on the clock of time.monotonic()."""

    @property
    def peer(self) -> Callable[[], str]:
        """Function that returns the address of the caller."""


Handler = Callable[..., Content]
"""Function ``(request, call) -> reply``."""
SpaceNames = Callable[[int], str]
"""Function that returns the name of the space with an id; empty if it is not known."""


def no_names(space_id: int) -> str:
    """Return the empty name; the default `SpaceNames`."""
    return ""


class LimitInterceptor:
    """Layer that admits calls within the limits of their principals.

    Trusted principals have no limits, and a forwarded call was counted by the daemon that its
    client called. A statement is not admitted itself: the calls that it makes are.

    Parameters
    ----------
    table : LimitTable
    space_name : callable
        Names of spaces, for requests that contain an id.
    """

    def __init__(self, table: LimitTable, space_name: SpaceNames = no_names) -> None:
        self._table, self._space_name = table, space_name

    def wrap(self, method: Method, handler: Handler) -> Handler:
        """Return a handler that raises `QuotaExceeded` for calls beyond a limit."""
        requirement = REQUIREMENTS.get(method.path)
        if requirement is None or requirement.scope in (Scope.INNER, Scope.DAEMON):
            return handler
        table, space_name = self._table, self._space_name

        def limited(request: Content, call: Call) -> Content:
            principal = call.principal
            if principal.is_trusted or principal.is_forwarded or table.is_empty:
                return handler(request, call)
            expected = expected_cost(request)
            space = space_of(request, space_name)
            with table.admit(principal.name, space, expected.rows, expected.size) as admission:
                reply = handler(request, call)
                actual = actual_cost(request, expected, reply)
                admission.settle(rows=actual.rows, size=actual.size)
            return reply

        return limited


class AuditInterceptor:
    """Layer that records changes, and calls that were refused for want of a role.

    Calls of daemons are not recorded: a daemon records what its own callers change.

    Parameters
    ----------
    log : AuditLog
    space_name : callable
        Names of spaces, for requests that contain an id.
    """

    def __init__(self, log: AuditLog, space_name: SpaceNames = no_names) -> None:
        self._log, self._space_name = log, space_name

    def wrap(self, method: Method, handler: Handler) -> Handler:
        """Return a handler that records its calls."""
        requirement = REQUIREMENTS.get(method.path)
        changes = requirement is not None and requirement.changes

        def audited(request: Content, call: Call) -> Content:
            if call.principal.kind is PrincipalKind.DAEMON:
                return handler(request, call)
            if changes:
                self._log.check_writable()
            try:
                reply = handler(request, call)
            except AsterismError as error:
                if changes or isinstance(error, Forbidden | Unauthenticated):
                    self._record(method, request, call, type(error).__name__, error.message)
                raise
            except Exception:
                if changes:
                    self._record(method, request, call, Internal.__name__, "see the daemon's log")
                raise
            if changes:
                self._record(method, request, call, OK, describe(request))
            return reply

        return audited

    def _record(
        self, method: Method, request: Content, call: Call, outcome: str, detail: str
    ) -> None:
        self._log.record(
            call.principal,
            method=method.name,
            space=space_of(request, self._space_name),
            outcome=outcome,
            detail=detail,
            peer=call.peer(),
            deadline=max(call.deadline, time.monotonic() + _MIN_RECORD_WAIT_S),
        )


def space_of(request: Content, space_name: SpaceNames = no_names) -> str:
    """Return the name of the space that a request is for or creates; empty if it has none."""
    head: Any = request.head if isinstance(request, Frame) else request
    if isinstance(head, metad_pb.CreateSpaceRequest | metad_pb.ImportSpaceRequest):
        return head.name
    fields = head.DESCRIPTOR.fields_by_name
    if "space" in fields and isinstance(head.space, str):
        return head.space
    if "version_ref" in fields:
        head = head.version_ref
    space_id = getattr(head, "space_id", 0)
    return space_name(space_id) if space_id else ""


def describe(request: Content) -> str:
    """Return the fields of a request on one line, and the number of rows in its arrays."""
    head: Message = request.head if isinstance(request, Frame) else request
    text = (
        text_format.MessageToString(head, as_one_line=True, as_utf8=True).strip()
        if head.ByteSize() <= _MAX_DETAIL_BYTES
        else f"{head.ByteSize()} bytes"
    )
    if isinstance(request, Frame):
        text = f"{text} rows: {max(map(len, request.arrays.values()), default=0)}".strip()
    return text
