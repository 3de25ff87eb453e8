"""gRPC handlers of metad's Access service; each translates one call."""

from __future__ import annotations

from asterism_daemonkit.rpc.call_context import CallContext
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.access_service import AccessService
from metad.wire import access as wire


class AccessApi:
    """Handlers of `asterism.v1.Access`."""

    def __init__(self, service: AccessService) -> None:
        self._service = service

    def create_api_key(
        self, request: metad_pb.CreateApiKeyRequest, call: CallContext
    ) -> metad_pb.CreateApiKeyReply:
        """Create an API key; the reply is the only one with the secret."""
        key, text = self._service.create_api_key(
            request.principal, expires_s=request.expires_s, description=request.description
        )
        return metad_pb.CreateApiKeyReply(
            key=wire.api_key_to_proto(key, with_hash=False), secret=text
        )

    def list_api_keys(
        self, request: metad_pb.ListApiKeysRequest, call: CallContext
    ) -> metad_pb.ApiKeyList:
        """Return the API keys of a principal, or all."""
        keys = self._service.api_keys(request.principal)
        return metad_pb.ApiKeyList(
            keys=[wire.api_key_to_proto(key, with_hash=False) for key in keys]
        )

    def revoke_api_key(
        self, request: metad_pb.RevokeApiKeyRequest, call: CallContext
    ) -> metad_pb.ApiKey:
        """Revoke an API key."""
        return wire.api_key_to_proto(self._service.revoke_api_key(request.key_id), with_hash=False)

    def grant_role(self, request: metad_pb.RoleGrant, call: CallContext) -> metad_pb.RoleGrant:
        """Set the role of a principal in a space."""
        return wire.grant_to_proto(self._service.grant_role(wire.grant_from_proto(request)))

    def revoke_role(
        self, request: metad_pb.RevokeRoleRequest, call: CallContext
    ) -> metad_pb.RevokeRoleReply:
        """Remove the role of a principal in a space."""
        return metad_pb.RevokeRoleReply(
            notice=self._service.revoke_role(request.principal, request.space)
        )

    def list_grants(
        self, request: metad_pb.ListGrantsRequest, call: CallContext
    ) -> metad_pb.RoleGrantList:
        """Return the grants of a principal and a space, or all."""
        grants = self._service.grants(request.principal, request.space)
        return metad_pb.RoleGrantList(grants=[wire.grant_to_proto(grant) for grant in grants])

    def set_access_limits(
        self, request: metad_pb.AccessLimits, call: CallContext
    ) -> metad_pb.AccessLimits:
        """Set the limits of a principal in a space."""
        return wire.limits_to_proto(self._service.set_limits(wire.limits_from_proto(request)))

    def list_access_limits(
        self, request: metad_pb.ListGrantsRequest, call: CallContext
    ) -> metad_pb.AccessLimitsList:
        """Return the limits of a principal and a space, or all."""
        limits = self._service.limits(request.principal, request.space)
        return metad_pb.AccessLimitsList(limits=[wire.limits_to_proto(entry) for entry in limits])
