"""Checks and records around the handlers of a daemon: the audit log, roles and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from asterism_access.audit_log import AuditLog
from asterism_access.guard import AccessGuard
from asterism_access.limit_and_audit_interceptors import AuditInterceptor, LimitInterceptor
from asterism_access.limits import LimitTable
from asterism_access.refused_credential_audit import Authenticate, RefusedCredentials
from asterism_daemonkit.access_metrics import AccessMetrics
from asterism_daemonkit.audit_settings import AuditSettings
from asterism_daemonkit.metrics import Metrics
from asterism_daemonkit.rpc.call_context import Handler
from asterism_daemonkit.rpc.fair_pool import ShareSource, equal_share
from asterism_proto.methods import Method
from asterism_proto.v1 import metad_pb2 as metad_pb


class HandlerChecks:
    """Layers around the handlers of a daemon.

    From the outside: the audit log, which records refused calls too; the roles of the caller; its
    limits. A layer that is off costs nothing.

    Parameters
    ----------
    settings : AuditSettings
        Settings of the audit log.
    metrics : Metrics
        Metrics of the daemon.
    daemon : str
        Name of the daemon, as a label of metrics.
    guard : AccessGuard or None
        Checks roles; None without access control, and then there are no limits either.
    state : callable
        Returns the newest access state: limits. None: it is not known yet.
    space_name : callable
        Returns the name of the space with an id; empty if it is not known.
    """

    def __init__(
        self,
        settings: AuditSettings,
        *,
        metrics: Metrics,
        daemon: str,
        guard: AccessGuard | None,
        state: Callable[[], metad_pb.AccessState | None],
        space_name: Callable[[int], str],
    ) -> None:
        self.audit_log: AuditLog | None = None
        """Audit log; None without one."""
        self._layers: list[Callable[[Method, Handler], Handler]] = []
        """From the inside to the outside."""
        self.share_of: ShareSource = equal_share
        """Weight of the turns of a principal."""
        self.refused_credentials: RefusedCredentials | None = None
        """Refused credentials of callers; None without access control."""
        if guard is None and not settings.audit_file:
            return
        access_metrics = AccessMetrics(metrics.registry, daemon)
        if guard is not None:
            table = LimitTable(state, on_refusal=access_metrics.count_quota_exceeded)
            access_metrics.add_limit_uses(table.uses)
            self.share_of = table.share
            self._layers += [LimitInterceptor(table, space_name).wrap, guard.wrap]
        self.audit_log = settings.open_audit_log(access_metrics.count_audit_record)
        if self.audit_log is not None:
            self._layers.append(AuditInterceptor(self.audit_log, space_name).wrap)
        if guard is not None:
            self.refused_credentials = RefusedCredentials(
                access_metrics.count_refused_credential, self.audit_log
            )

    def wrap_all(
        self, methods: Mapping[str, Method], handlers: Mapping[str, Handler]
    ) -> dict[str, Handler]:
        """Return the handlers of a service by path, with all layers."""
        wrapped = {method.path: handlers[method.path] for method in methods.values()}
        for layer in self._layers:
            wrapped = {
                method.path: layer(method, wrapped[method.path]) for method in methods.values()
            }
        return wrapped

    def counting(self, port: str, authenticate: Authenticate | None) -> Authenticate | None:
        """Return the function that authenticates callers, with its refusals counted for a port."""
        if authenticate is None or self.refused_credentials is None:
            return authenticate
        return self.refused_credentials.counting(port, authenticate)

    def close(self) -> None:
        """Write the last records of the audit log."""
        if self.audit_log is not None:
            self.audit_log.close()
