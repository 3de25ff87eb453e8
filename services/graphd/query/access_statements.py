"""Statements of access control: roles in spaces, and API keys."""

from __future__ import annotations

from asterism.graph import Client
from asterism_access.roles import parse_role
from asterism_proto.errors import InvalidRequest, NotFound
from graphd.query import ast
from graphd.query.errors import located_error
from graphd.query.execute import StatementResult
from graphd.query.parameters import ParameterBindings
from graphd.query.table import ResultTable, table_from_rows


def grant_role(
    statement: ast.GrantRoleStatement, client: Client, bindings: ParameterBindings
) -> StatementResult:
    """Grant a role in a space; return the grant."""
    role = _role(statement.role, bindings)
    grant = client.grant(_principal(statement.principal, bindings), statement.space.text, role)
    return StatementResult(table=_roles([(grant.principal, grant.space, grant.role)]), kind="grant")


def revoke_role(
    statement: ast.RevokeRoleStatement, client: Client, bindings: ParameterBindings
) -> StatementResult:
    """Remove a principal's role in a space.

    Returns
    -------
    StatementResult
        How to regain access, if the cluster has no administrator left; otherwise nothing.

    Raises
    ------
    NotFound
        If the statement names a role, and the principal has another one there or none.
    """
    principal, space = _principal(statement.principal, bindings), statement.space.text
    if statement.role is not None:
        role = _role(statement.role, bindings)
        held = [grant.role for grant in client.grants(principal, space)]
        if role not in held:
            found = f"the role {held[0]}" if held else "no role"
            raise located_error(
                NotFound,
                bindings.text,
                statement.role.at,
                f"role={role!r}: {principal!r} has {found} on {space}; leave out the role to "
                "revoke any",
            )
    notice = client.revoke(principal, space)
    table = table_from_rows({"notice": str}, [(notice,)]) if notice else ResultTable()
    return StatementResult(table=table, kind="revoke")


def show_access(statement: ast.ShowStatement, client: Client) -> StatementResult:
    """Return the roles that the caller may see, or the API keys without their secrets."""
    if statement.subject == "ROLES":
        space = None if statement.space is None else statement.space.text
        rows = [(row.principal, row.space, row.role) for row in client.grants(space=space)]
        return StatementResult(table=_roles(rows), kind="show")
    keys = [
        (
            key.key_id,
            key.principal,
            key.description,
            key.created_ms,
            key.expires_ms,
            key.revoked_ms,
        )
        for key in client.api_keys()
    ]
    titles: dict[str, type] = {
        "key_id": str,
        "principal": str,
        "description": str,
        "created_ms": int,
        "expires_ms": int,
        "revoked_ms": int,
    }
    return StatementResult(table=table_from_rows(titles, keys), kind="show")


def _roles(rows: list[tuple[str, str, str]]) -> ResultTable:
    return table_from_rows({"principal": str, "space": str, "role": str}, rows)


def _role(role: ast.Identifier, bindings: ParameterBindings) -> str:
    """Return the name of a role; InvalidRequest has its position."""
    try:
        return parse_role(role.text).name.lower()
    except InvalidRequest as error:
        raise located_error(InvalidRequest, bindings.text, role.at, error.message) from None


def _principal(principal: ast.Identifier | ast.Parameter, bindings: ParameterBindings) -> str:
    """Return the name of a principal; InvalidRequest has its position."""
    if isinstance(principal, ast.Identifier):
        return principal.text
    name = bindings.scalar(principal)
    if not isinstance(name, str):
        raise located_error(
            InvalidRequest,
            bindings.text,
            principal.at,
            f"{principal} is {name!r}: expected the name of a principal",
        )
    return name
