"""Guard of handlers: checks what `REQUIREMENTS` says of a call before the handler runs.

A daemon without access control does not wrap its handlers, so the guard costs it nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, Protocol

from asterism_access import reply_filtering
from asterism_access.principals import Principal
from asterism_access.requirements import REQUIREMENTS, Requirement, Scope
from asterism_access.roles import EVERY_SPACE, Role
from asterism_proto.errors import Forbidden, NotFound
from asterism_proto.framing import Frame
from asterism_proto.methods import Method
from asterism_proto.transport import Content


class GuardedCall(Protocol):
    """Context of a call, as far as the guard needs it."""

    @property
    def principal(self) -> Principal:
        """Caller."""

    def remaining(self) -> float:
        """Return the seconds left."""


Handler = Callable[..., Content]
"""Function ``(request, call) -> reply``."""
SpaceLookup = Callable[[int, GuardedCall], int]
"""Function that returns the id of the space of a load, job or pin; 0 or NotFound if there is none.

The space may have been dropped, and another one may have its name now."""


def _no_space(number: int, call: GuardedCall) -> int:
    return 0


class AccessGuard:
    """Guard of the handlers of a daemon.

    Parameters
    ----------
    space_name : callable
        Returns the name of the space with an id; empty if the daemon does not know the id.
    space_of_load, space_of_job, space_of_pin : callable, optional
        Return the id of the space of a load, job or pin. Default: every id is unknown.
    """

    def __init__(
        self,
        *,
        space_name: Callable[[int], str] = lambda _: "",
        space_of_load: SpaceLookup = _no_space,
        space_of_job: SpaceLookup = _no_space,
        space_of_pin: SpaceLookup = _no_space,
    ) -> None:
        self._space_name = space_name
        self._lookups: Mapping[Scope, tuple[str, SpaceLookup]] = {
            Scope.LOAD: ("load_id", space_of_load),
            Scope.JOB: ("job_id", space_of_job),
            Scope.PIN: ("pin_id", space_of_pin),
        }

    def wrap_all(
        self, methods: Mapping[str, Method], handlers: Mapping[str, Handler]
    ) -> dict[str, Handler]:
        """Return the handlers of a service by path, each with its check."""
        return {
            method.path: self.wrap(method, handlers[method.path]) for method in methods.values()
        }

    def wrap(self, method: Method, handler: Handler) -> Handler:
        """Return a handler that refuses callers without the role that the method requires.

        The replies of methods that any principal may call have only what the caller may see. A
        method that `REQUIREMENTS` does not list is refused to every caller.
        """
        requirement = REQUIREMENTS.get(method.path)
        if requirement is None:
            return _refuse(method)
        match requirement.scope:
            case Scope.SPACE:
                return self._in_space(requirement, handler, method.is_framed)
            case Scope.SPACE_ID:
                return self._in_space_id(requirement, handler, method)
            case Scope.LOAD | Scope.JOB | Scope.PIN:
                return self._by_lookup(requirement, handler)
            case Scope.VISIBLE:
                return self._filtered(method, requirement, handler)
            case Scope.INNER:
                return handler
            case Scope.CLUSTER:
                return _of_cluster_admins(method, handler)
            case Scope.DAEMON:
                return _of_daemons(method, handler)

    def require(self, principal: Principal, space: str, role: Role) -> None:
        """Check the role of a principal in a space.

        Raises
        ------
        Forbidden
            If it is missing. Without any role there, the message is the same if the space does
            not exist.
        """
        held = principal.roles.get(space)  # the usual case, in less than a microsecond
        if held is None or held < role:
            held = principal.role_in(space)
            if held is None or held < role:
                raise _missing_role(principal, f"space={space!r}", held, role)

    def require_cluster_admin(self, principal: Principal, what: str) -> None:
        """Check that a principal is an administrator of the cluster; Forbidden if it is none."""
        if not principal.is_cluster_admin:
            raise _not_cluster_admin(principal, what)

    def role_in_space_id(self, principal: Principal, space_id: int) -> Role | None:
        """Return the role in the space with an id; None if the principal has none there."""
        held = principal.roles_by_id.get(space_id)
        named = principal.role_in(self._space_name(space_id) or EVERY_SPACE)
        return max((role for role in (held, named) if role is not None), default=None)

    def _in_space(self, requirement: Requirement, handler: Handler, is_framed: bool) -> Handler:
        role, require = requirement.role, self.require

        def of_message(request: Any, call: GuardedCall) -> Content:
            require(call.principal, request.space, role)
            return handler(request, call)

        def of_frame(request: Frame[Any], call: GuardedCall) -> Content:
            require(call.principal, request.head.space, role)
            return handler(request, call)

        return of_frame if is_framed else of_message

    def _in_space_id(self, requirement: Requirement, handler: Handler, method: Method) -> Handler:
        role = requirement.role
        has_version = "version_ref" in method.request.DESCRIPTOR.fields_by_name

        def check(request: Frame[Any], call: GuardedCall) -> Content:
            principal, head = call.principal, request.head
            space_id = head.version_ref.space_id if has_version else head.space_id
            held = principal.roles_by_id.get(space_id)
            if (held is None or held < role) and not principal.is_trusted:
                held = self.role_in_space_id(principal, space_id)
                if held is None or held < role:
                    raise _missing_role(principal, f"space_id={space_id}", held, role)
            return handler(request, call)

        return check

    def _by_lookup(self, requirement: Requirement, handler: Handler) -> Handler:
        role = requirement.role
        field, lookup = self._lookups[requirement.scope]

        def check(request: Any, call: GuardedCall) -> Content:
            principal = call.principal
            if not principal.is_cluster_admin:
                number = getattr(request, field)
                try:
                    space_id = lookup(number, call)
                except NotFound:
                    space_id = 0
                named = getattr(request, "space", "")  # commits name the space of the load too
                fits = space_id and (not named or named == self._space_name(space_id))
                held = self.role_in_space_id(principal, space_id) if fits else None
                if held is None or held < role:
                    raise _missing_role(principal, f"{field}={number}", held, role)
            return handler(request, call)

        return check

    def _filtered(self, method: Method, requirement: Requirement, handler: Handler) -> Handler:
        select = reply_filtering.FILTERS.get(method.python_name)
        if select is None:
            return handler

        def check(request: Any, call: GuardedCall) -> Content:
            principal = call.principal
            if principal.is_trusted or principal.has_role(EVERY_SPACE, requirement.role):
                return handler(request, call)
            space = getattr(request, "space", "")
            if space and requirement.role is Role.READER:
                self.require(principal, space, Role.READER)
            viewer = reply_filtering.ReplyFilter(principal, self._space_name)
            return select(viewer, request, lambda narrowed: handler(narrowed, call))

        return check


def _refuse(method: Method) -> Handler:
    def refuse(request: Content, call: GuardedCall) -> NoReturn:
        raise Forbidden(
            f"method={method.path}: expected a method with an entry in the table of required "
            "roles; use another release of the daemon"
        )

    return refuse


def _of_cluster_admins(method: Method, handler: Handler) -> Handler:
    def check(request: Content, call: GuardedCall) -> Content:
        if not call.principal.is_cluster_admin:
            raise _not_cluster_admin(call.principal, method.name)
        return handler(request, call)

    return check


def _of_daemons(method: Method, handler: Handler) -> Handler:
    def check(request: Content, call: GuardedCall) -> Content:
        if not call.principal.is_trusted:
            raise Forbidden(
                f"principal={call.principal.name!r}: expected a daemon of the cluster for "
                f"{method.name}; call a method of graphd"
            )
        return handler(request, call)

    return check


def _missing_role(principal: Principal, what: str, held: Role | None, needed: Role) -> Forbidden:
    name = principal.name
    if held is None:
        place = "there" if what.startswith("space") else "in its space"
        return Forbidden(
            f"{what}: not found, or {name!r} has no role {place}; SHOW ROLES lists yours"
        )
    return Forbidden(
        f"{what}: expected the role {needed.name.lower()} or a higher one, but {name!r} has "
        f"{held.name.lower()}; ask an administrator of the space for it"
    )


def _not_cluster_admin(principal: Principal, what: str) -> Forbidden:
    return Forbidden(
        f"principal={principal.name!r}: expected an administrator of the cluster for {what}; ask "
        f"one for the role admin in {EVERY_SPACE!r}"
    )
