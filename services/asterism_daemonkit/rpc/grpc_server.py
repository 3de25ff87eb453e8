"""gRPC server: passes raw request bytes to a handler, and reports every error in one form.

Requests are parsed inside the handler rather than by gRPC, so malformed bytes lead to an
InvalidRequest with an explanation (grpcio returns INTERNAL if a deserializer fails)."""

from __future__ import annotations

import hashlib
import logging
import math
import resource
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NoReturn

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from asterism_access import delegation
from asterism_access.principals import LOCAL, Principal
from asterism_daemonkit.listening import listen, listen_error, split_address
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import CallContext, Handler
from asterism_daemonkit.rpc.connection_limits import DEFAULT_LIMITS, ConnectionLimits
from asterism_daemonkit.rpc.fair_pool import (
    FairPool,
    ShareSource,
    Turn,
    busy_error,
    equal_share,
    turn_of,
)
from asterism_daemonkit.rpc.message_memory import MessageMemory
from asterism_daemonkit.rpc.silent_callers import SilentCallers
from asterism_daemonkit.tls import DaemonTls
from asterism_io.unix_sockets import socket_name
from asterism_proto.errors import (
    AUTHORIZATION_KEY,
    ON_BEHALF_KEY,
    AsterismError,
    Busy,
    Deadline,
    Internal,
    InvalidRequest,
    Unauthenticated,
)
from asterism_proto.grpc_status import status_from_error
from asterism_proto.methods import Method
from asterism_proto.transport import MAX_MESSAGE_BYTES

logger = logging.getLogger(__name__)

DEFAULT_TIMEOUT_S = 60.0
"""Timeout in seconds of a call without a deadline, so that no call can hang."""
MAX_TIMEOUT_S = 3600.0
_OPTIONS = (
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.http2.max_ping_strikes", 0),
)
FIXED_WINDOW_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 1 << 20),
)
"""Options of connections to metad, on both sides: a receive window fixed at 1 MiB.

To adapt the window, gRPC sends a ping after data that it receives and measures the time to the
reply. On a connection with one heartbeat a second, that is more traffic than the heartbeats."""

MAX_STREAMS = 1024
"""Calls of one connection at a time; its caller keeps further ones back."""
_OPEN_FILES_SHARE = 0.75
"""Share of the open files that connections of the gRPC port may take."""
_HEALTH_THREADS = 64
"""Threads for health checks and reflection, which a silent caller may hold for a while."""
_MAX_LOOK_S = 5.0
"""Most seconds between two looks at calls with silent callers."""

_ACCESS_OPTIONS = (("grpc.max_metadata_size", 64 << 10),)
"""Options with access control: credentials, and principals with roles in many spaces."""
Authenticate = Callable[[str], Principal]
"""Function that returns the principal of an authorization text, ``Bearer`` and a credential.

It raises Unauthenticated if the credential is missing or not accepted."""

Identify = Callable[[], Principal]
"""Function that returns the principal of a call, or raises Unauthenticated."""
_MAX_TOKENS = 4096
"""Tokens with a principal that is remembered for turns."""


class _FairDispatcher(grpc.GenericRpcHandler):
    """Router of calls to the queue of their turn, or to a refusal if the pool is full.

    Refusals run on threads of their own and do not wait."""

    def __init__(
        self,
        behaviors: Mapping[str, Callable[..., bytes]],
        refuse: Callable[[AsterismError], Any],
        pool: FairPool,
        share_of: ShareSource,
        authenticate: Authenticate | None,
    ) -> None:
        self._behaviors, self._refuse, self._pool = behaviors, refuse, pool
        self._share_of, self._authenticate = share_of, authenticate
        self._known: dict[str, Principal] = {}
        """Principals by the SHA-256 of their tokens, for turns only."""
        self._full = refuse(busy_error(pool.limit))

    def service(self, handler_call_details: Any) -> Any:
        behavior = self._behaviors.get(handler_call_details.method)
        if behavior is None:
            return None
        metadata = handler_call_details.invocation_metadata or ()
        identify, turn = _identify_local, turn_of(LOCAL, self._share_of, metadata)
        if self._authenticate is not None:
            try:
                identify, turn = self._identify(metadata, self._authenticate)
            except Exception as error:
                return self._refuse(typed_error(error))
        executor = self._pool.admit(turn)
        if executor is None:
            return self._full
        queued_behavior: Any = partial(behavior, identify, turn)
        queued_behavior.experimental_thread_pool = executor
        # As a stream, for then the behavior, which can give the call up, waits for the message.
        return grpc.stream_unary_rpc_method_handler(queued_behavior)

    def _identify(
        self, metadata: Sequence[tuple[Any, Any]], authenticate: Authenticate
    ) -> tuple[Identify, Turn]:
        """Return how to identify the principal of a call, and the turn of the call.

        A token may need keys that are fetched from its issuer. It is therefore verified by the
        thread of the call, because all calls wait for the thread of this method.
        """
        text = next((str(value) for key, value in metadata if key == AUTHORIZATION_KEY), "")
        if text.count(".") != 2:
            principal = principal_of(metadata, authenticate)
            return lambda: principal, turn_of(principal, self._share_of, metadata)
        digest = hashlib.sha256(text.encode()).hexdigest()

        def identify() -> Principal:
            principal = principal_of(metadata, authenticate)
            if len(self._known) >= _MAX_TOKENS:
                self._known.clear()
            self._known[digest] = principal
            return principal

        known = self._known.get(digest)
        return identify, Turn(digest) if known is None else turn_of(known, self._share_of, metadata)


def _identify_local() -> Principal:
    return LOCAL


def principal_of(metadata: Sequence[tuple[Any, Any]], authenticate: Authenticate) -> Principal:
    """Return the principal of a call with some metadata.

    For a call that a daemon forwards, it is the principal that called that daemon.

    Raises
    ------
    Unauthenticated
        If the credentials are missing or not accepted.
    Forbidden
        If the caller names another principal and is not a daemon.
    """
    texts = [value for key, value in metadata if key == AUTHORIZATION_KEY]
    if len(texts) > 1:
        raise Unauthenticated(f"authorization: expected one credential, not {len(texts)}")
    principal = authenticate(str(texts[0]) if texts else "")
    delegations = [value for key, value in metadata if key == ON_BEHALF_KEY]
    if delegations:
        return delegation.from_text(str(delegations[0]), forwarder=principal)
    return principal


class _ReflectionGuard(grpc.ServerInterceptor):
    """Refuses reflection to callers that cannot be authenticated."""

    def __init__(self, authenticate: Authenticate) -> None:
        self._authenticate = authenticate

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        if handler_call_details.method.startswith(f"/{reflection.SERVICE_NAME}/"):
            try:
                principal_of(handler_call_details.invocation_metadata or (), self._authenticate)
            except Exception as error:
                refused = typed_error(error)
                return grpc.stream_stream_rpc_method_handler(
                    lambda requests, context: _abort(context, refused)
                )
        return continuation(handler_call_details)


class _SilenceGuard(grpc.ServerInterceptor):
    """Lets handlers of one message, such as health checks, wait for it with a time limit."""

    def __init__(self, receive: Callable[[Iterator[Any], Any], Any]) -> None:
        self._receive = receive

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        handler = continuation(handler_call_details)
        if handler is None or handler.request_streaming:
            return handler
        behavior = handler.unary_stream if handler.response_streaming else handler.unary_unary

        def receive_and_answer(requests: Iterator[Any], context: Any, *callback: Any) -> Any:
            try:
                request = self._receive(requests, context)
            except AsterismError as error:
                _abort(context, error)
            return behavior(request, context, *callback)

        guarded: Any = receive_and_answer
        if getattr(behavior, "experimental_non_blocking", False):
            guarded = lambda requests, context, send_response_callback: receive_and_answer(  # noqa: E731 - gRPC passes the name
                requests, context, send_response_callback
            )
            guarded.experimental_non_blocking = True
        wrap = (
            grpc.stream_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.stream_unary_rpc_method_handler
        )
        return wrap(guarded, handler.request_deserializer, handler.response_serializer)


def typed_error(error: Exception) -> AsterismError:
    """Return the typed error of an exception.

    An unexpected exception is logged under an id and becomes Internal, with the id in the
    message. A request that the process has not enough memory for is Busy: memory may be free
    later, and a smaller request may fit."""
    if isinstance(error, AsterismError):
        return error
    if isinstance(error, MemoryError):
        logger.warning("memory_exhausted", extra={"cause": str(error)})
        return Busy(
            f"not enough memory for the request ({error or 'allocation failed'}); send "
            "smaller requests, or give the daemon more memory"
        )
    error_id = secrets.token_hex(4)
    logger.error("call_crashed", exc_info=error, extra={"error_id": error_id})
    return Internal(f"internal error of the daemon; its log has the details under id {error_id}")


class GrpcServer:
    """gRPC server with the services of a daemon on one port, with health and reflection.

    Parameters
    ----------
    address : str
        host:port; port 0 picks a free one.
    services : mapping
        Full name of a service -> (its methods by handler name, its handlers by path).
    workers : int, default 16
        Threads that serve calls.
    queue : int, default 256
        Calls that may wait for a thread. A further call is Busy, unless its principal has less
        than its share.
    cores : int
        Calls that compute at a time while several principals call, and each of them may have one
        beyond that. Default: there is no limit below ``workers``.
    metrics : Metrics, optional
        Counts calls.
    options : sequence of (str, int)
        Further options of the connections, such as `FIXED_WINDOW_OPTIONS`.
    tls : DaemonTls, optional
        Certificates of the port. Default: the port is not encrypted.
    share_of : callable
        Returns the weight of the turns of a principal with some name; by default 1.
    authenticate : callable, optional
        Returns the principal of an authorization text, or raises Unauthenticated. Only health
        checks need no principal. Default: every caller is `LOCAL`.
    limits : ConnectionLimits
        Limits of the port's connections.
    """

    def __init__(
        self,
        *,
        address: str,
        services: Mapping[str, tuple[Mapping[str, Method], Mapping[str, Handler]]],
        workers: int = 16,
        queue: int = 256,
        cores: int = 0,
        metrics: Metrics | None = None,
        options: Sequence[tuple[str, int]] = (),
        tls: DaemonTls | None = None,
        share_of: ShareSource = equal_share,
        authenticate: Authenticate | None = None,
        limits: ConnectionLimits = DEFAULT_LIMITS,
    ) -> None:
        self._address, self._tls, self._limits = address, tls, limits
        self._metrics = metrics
        self._pool = FairPool(workers, queue, cores=cores)
        self._message_memory = MessageMemory(limits.message_memory_mib << 20)
        shortest_s = min(limits.request_timeout_s, limits.reply_timeout_s)
        self._silent_callers = SilentCallers(min(shortest_s / 4, _MAX_LOOK_S))
        self._refusals = ThreadPoolExecutor(2, thread_name_prefix="refusal")
        self._server = grpc.server(
            ThreadPoolExecutor(_HEALTH_THREADS, thread_name_prefix="health"),
            options=(
                *_OPTIONS,
                *_connection_options(limits),
                *(() if authenticate is None else _ACCESS_OPTIONS),
                *options,
            ),
            interceptors=[
                *(() if authenticate is None else (_ReflectionGuard(authenticate),)),
                _SilenceGuard(self._receive),
            ],
        )
        self._health = health.HealthServicer(experimental_non_blocking=True)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names = [*services, ""]
        behaviors = {
            method.path: self._behavior(method, handlers[method.path])
            for methods, handlers in services.values()
            for method in methods.values()
        }
        dispatcher = _FairDispatcher(behaviors, self._refusal, self._pool, share_of, authenticate)
        self._server.add_generic_rpc_handlers((dispatcher,))
        service_names = [
            *services,
            health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
            reflection.SERVICE_NAME,
        ]
        reflection.enable_server_reflection(service_names, self._server)
        self.set_serving(False)

    def start(self) -> int:
        """Open the port and return its number; Unavailable if it is taken."""
        listen(self._address).close()  # gRPC would explain a taken port in its own log alone
        try:
            port: int = (
                self._server.add_insecure_port(self._address)
                if self._tls is None
                else self._server.add_secure_port(self._address, self._tls.grpc_credentials())
            )
        except RuntimeError as error:
            raise listen_error(self._address, str(error)) from error
        if self._tls is None:  # nothing is reachable without TLS, on this host either
            self._open_unix_socket(port)
        self._silent_callers.start()
        self._server.start()
        return port

    def _open_unix_socket(self, port: int) -> None:
        """Listen on a Unix socket for callers on this host; without it they use the port."""
        name = socket_name(split_address(self._address)[0], port)
        try:
            if name:
                self._server.add_insecure_port(f"unix-abstract:{name}")
        except RuntimeError as error:
            logger.info("unix_socket_unavailable", extra={"socket": name, "reason": str(error)})

    def set_serving(self, serving: bool) -> None:
        """Set the status that the health service reports."""
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in self._names:
            self._health.set(name, status)

    def stop(self, grace_s: float) -> None:
        """Accept no more calls, give running ones ``grace_s`` seconds, then stop."""
        self._health.enter_graceful_shutdown()
        self._server.stop(grace_s).wait()
        self._pool.stop()
        self._refusals.shutdown(wait=False)
        self._silent_callers.stop()

    def _refusal(self, error: AsterismError) -> Any:
        """Return the handler of a call that is refused before it is queued."""

        def behavior(requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
            if self._metrics is not None:
                self._metrics.count_call("refused", error.code, 0.0)
            _abort(context, error)

        # gRPC runs a behavior with this attribute on the given threads. A refusal must not queue
        # after the calls that fill the pool, and it does not wait for the message.
        behavior.experimental_thread_pool = self._refusals  # type: ignore[attr-defined]
        return grpc.stream_unary_rpc_method_handler(behavior)

    def _receive(self, requests: Iterator[Any], context: Any) -> Any:
        """Return the message of a call.

        Raises
        ------
        InvalidRequest
            If the caller sends none.
        grpc.RpcError
            If the call ended meanwhile, or its caller was silent for too long.
        """
        with self._silent_callers.waiting(context.cancel, self._limits.request_timeout_s):
            request = next(requests, None)
        if request is None:
            raise InvalidRequest(
                "message: expected one in the call, but it ended without; send one"
            )
        return request

    def _behavior(self, method: Method, handler: Handler) -> Callable[..., bytes]:
        def behavior(
            identify: Identify, turn: Turn, requests: Iterator[bytes], context: grpc.ServicerContext
        ) -> bytes:
            started_at = time.monotonic()
            code = "OK"
            if self._metrics is not None:
                self._metrics.in_flight.inc()
            try:
                data = self._receive(requests, context)
                with self._message_memory.reserve(len(data)):
                    return self._answer(method, handler, data, context, identify, turn)
            except grpc.RpcError:  # the call has ended; its caller sees no reply
                code = Deadline.code
                raise
            except Exception as error:
                asterism_error = typed_error(error)
                code = asterism_error.code
                _abort(context, asterism_error)
            finally:
                if self._metrics is not None:
                    self._metrics.in_flight.dec()
                    self._metrics.count_call(method.name, code, time.monotonic() - started_at)

        return behavior

    def _answer(
        self,
        method: Method,
        handler: Handler,
        data: bytes,
        context: grpc.ServicerContext,
        identify: Identify,
        turn: Turn,
    ) -> bytes:
        remaining_s = context.time_remaining()
        if remaining_s is None or math.isinf(remaining_s):
            remaining_s = DEFAULT_TIMEOUT_S
        deadline = time.monotonic() + min(remaining_s, MAX_TIMEOUT_S)
        waiting_call = CallContext(deadline, context.is_active)
        with self._pool.turn(turn, waiting_call):
            call = CallContext(
                deadline,
                context.is_active,
                context.add_callback,
                peer=context.peer,
                principal=identify(),
            )
            call.remaining()
            reply = method.pack(handler(method.unpack_request(data), call))
        if len(reply) > MAX_MESSAGE_BYTES:
            raise InvalidRequest(
                f"the reply has {len(reply):,} bytes: expected at most {MAX_MESSAGE_BYTES:,}; "
                "split the request"
            )
        if call.deadline > time.monotonic() + self._limits.reply_timeout_s:
            # gRPC ends calls at their deadline. This one would hold its reply for longer.
            number = self._silent_callers.enter(context.cancel, self._limits.reply_timeout_s)
            if not context.add_callback(partial(self._silent_callers.leave, number)):
                self._silent_callers.leave(number)
        return reply


def _connection_options(limits: ConnectionLimits) -> tuple[tuple[str, int], ...]:
    """Return gRPC's options for the limits of connections."""
    open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = min(limits.grpc_connections, int(open_files * _OPEN_FILES_SHARE))
    header_timeout_ms = math.ceil(limits.header_timeout_s * 1e3)
    return (
        ("grpc.max_allowed_incoming_connections", connections),
        ("grpc.max_connection_idle_ms", math.ceil(limits.idle_timeout_s * 1e3)),
        ("grpc.server_handshake_timeout_ms", header_timeout_ms),
        ("grpc.http2.settings_timeout", header_timeout_ms),
        ("grpc.max_concurrent_streams", MAX_STREAMS),
    )


def _abort(context: Any, error: AsterismError) -> NoReturn:
    status = status_from_error(error)
    context.set_trailing_metadata(status.metadata)
    context.abort(grpc.StatusCode[status.code], status.details)
    raise AssertionError("abort always raises")
