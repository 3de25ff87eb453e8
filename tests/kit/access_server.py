"""A graphd of spaces and access control over real gRPC, with a record of credentials."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from asterism_model.schema import Schema
from asterism_proto.errors import AUTHORIZATION_KEY, AsterismError, NotFound
from asterism_proto.grpc_status import status_from_error
from asterism_proto.methods import ACCESS, CATALOG, Method
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb

METHODS: dict[str, Method] = {
    method.path: method
    for method in (*ACCESS.values(), CATALOG["list_spaces"], CATALOG["describe_space"])
}


@dataclass
class AccessServer:
    """Keys, grants and limits of one server, and the credentials that its callers sent."""

    address: str = ""
    keys: dict[str, metad_pb.ApiKey] = field(default_factory=dict)
    roles: dict[tuple[str, str], metad_pb.RoleGrant] = field(default_factory=dict)
    limits: dict[tuple[str, str], metad_pb.AccessLimits] = field(default_factory=dict)
    authorizations: list[str | None] = field(default_factory=list)
    """``authorization`` of each call, in order; None: without it."""
    before: Callable[[], None] = lambda: None
    """Runs before each call; it may raise the error of the call."""

    def list_spaces(self, request: common_pb.Empty) -> metad_pb.SpaceList:
        return metad_pb.SpaceList(spaces=[_space("shop")])

    def describe_space(self, request: metad_pb.SpaceRequest) -> common_pb.Space:
        return _space(request.space)

    def create_api_key(self, request: metad_pb.CreateApiKeyRequest) -> metad_pb.CreateApiKeyReply:
        secret, now_ms = secrets.token_urlsafe(32), time.time_ns() // 1_000_000
        key = metad_pb.ApiKey(
            key_id=secrets.token_hex(6),  # no option of a command, as one with a dash in front
            principal=request.principal,
            secret_hash=hashlib.sha256(secret.encode()).digest(),
            created_ms=now_ms,
            expires_ms=now_ms + int(request.expires_s * 1000) if request.expires_s else 0,
            description=request.description,
        )
        self.keys[key.key_id] = key
        return metad_pb.CreateApiKeyReply(key=_public(key), secret=f"ak_{key.key_id}_{secret}")

    def list_api_keys(self, request: metad_pb.ListApiKeysRequest) -> metad_pb.ApiKeyList:
        return metad_pb.ApiKeyList(
            keys=[
                _public(key)
                for key in self.keys.values()
                if request.principal in ("", key.principal)
            ]
        )

    def revoke_api_key(self, request: metad_pb.RevokeApiKeyRequest) -> metad_pb.ApiKey:
        if request.key_id not in self.keys:
            raise NotFound(f"key_id={request.key_id!r}: not found")
        self.keys[request.key_id].revoked_ms = time.time_ns() // 1_000_000
        return _public(self.keys[request.key_id])

    def grant_role(self, request: metad_pb.RoleGrant) -> metad_pb.RoleGrant:
        self.roles[request.principal, request.space] = request
        return request

    def revoke_role(self, request: metad_pb.RevokeRoleRequest) -> metad_pb.RevokeRoleReply:
        removed = self.roles.pop((request.principal, request.space), None)
        is_last = removed is not None and removed.role == metad_pb.ADMIN and request.space == "*"
        return metad_pb.RevokeRoleReply(notice="run bootstrap" if is_last else "")

    def list_grants(self, request: metad_pb.ListGrantsRequest) -> metad_pb.RoleGrantList:
        return metad_pb.RoleGrantList(grants=_matching(request, self.roles))

    def set_access_limits(self, request: metad_pb.AccessLimits) -> metad_pb.AccessLimits:
        self.limits[request.principal, request.space] = request
        if request == metad_pb.AccessLimits(principal=request.principal, space=request.space):
            del self.limits[request.principal, request.space]
        return request

    def list_access_limits(self, request: metad_pb.ListGrantsRequest) -> metad_pb.AccessLimitsList:
        return metad_pb.AccessLimitsList(limits=_matching(request, self.limits))

    def serve(self, method: Method, data: bytes, context: grpc.ServicerContext) -> bytes:
        """Answer one call, and record its credentials."""
        metadata = dict(context.invocation_metadata())
        self.authorizations.append(metadata.get(AUTHORIZATION_KEY))
        handle: Any = getattr(self, method.python_name)
        try:
            self.before()
            return method.pack(handle(method.unpack_request(data)))
        except AsterismError as error:
            status = status_from_error(error)
            context.set_trailing_metadata(status.metadata)
            context.abort(grpc.StatusCode[status.code], status.details)
            raise AssertionError("abort raises") from error


def _space(name: str) -> common_pb.Space:
    schema = Schema.from_dict({"nodes": {"item": {}}})
    return common_pb.Space(name=name, space_id=1, schema=schema.to_proto())


def _public(key: metad_pb.ApiKey) -> metad_pb.ApiKey:
    """Return a key without its hash."""
    copy = metad_pb.ApiKey()
    copy.CopyFrom(key)
    copy.ClearField("secret_hash")
    return copy


def _matching(request: metad_pb.ListGrantsRequest, rows: dict[tuple[str, str], Any]) -> list[Any]:
    return [
        row
        for (principal, space), row in sorted(rows.items())
        if request.principal in ("", principal) and request.space in ("", space)
    ]


class _Router(grpc.GenericRpcHandler):
    def __init__(self, server: AccessServer) -> None:
        self._server = server

    def service(self, handler_call_details: Any) -> Any:
        method = METHODS.get(handler_call_details.method)
        if method is None:
            return None
        return grpc.unary_unary_rpc_method_handler(
            lambda data, context: self._server.serve(method, data, context)
        )


@contextmanager
def access_server() -> Iterator[AccessServer]:
    """Serve the methods of access control, and some of the catalog, until the block ends."""
    server, grpc_server = AccessServer(), grpc.server(ThreadPoolExecutor(4))
    grpc_server.add_generic_rpc_handlers((_Router(server),))
    server.address = f"127.0.0.1:{grpc_server.add_insecure_port('127.0.0.1:0')}"
    grpc_server.start()
    try:
        yield server
    finally:
        grpc_server.stop(0).wait()
