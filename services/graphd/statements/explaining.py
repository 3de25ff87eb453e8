"""EXPLAIN and PROFILE: the call that a statement stands for, who is asked for it, and how long that took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asterism_proto.arrays import Frame
from asterism_proto.schema import Schema
from asterism_proto.v1 import graphd_pb2 as wire
from graphd.statements.records import Body
from graphd.statements.table import Table, of_records
from graphd.statements.transport import Inside, Made

_MOST_SHARES = 20
"""Lines of a plan about where draws fall."""


def plan(body: Body, inside: Inside, schema: Schema | None, version: int = 0) -> tuple[str, Table]:
    """What a statement does: in lines, and a row for each request to a storaged.

    Parameters
    ----------
    body : Body
    inside : Inside
        With the calls that it made, or began with.
    schema : Schema, optional
        Of the space that it is about.
    version : int
        That it read; 0: the current one.
    """
    lines, requests = [f"statement  {body}", *(f"call       {_called(made)}" for made in inside.made)], []
    first = inside.made[0] if inside.made else None
    account = None if first is None else inside.account(first, version)
    if account is not None and first is not None:
        lines.append(f"version    {account.version}, {account.reply_bytes:,} bytes of reply")
        lines += _price(account.price) if account.HasField("price") else []
        for one in account.asked:
            lines.append(
                f"round {one.round}    {one.method} at {one.address or one.host}: {one.rows:,} rows, {one.sent:,} B out, {one.received:,} B in"
            )
            requests.append((one.round, one.method, one.address, one.rows, one.sent, one.received, one.host))
        lines += _shares(account, first, schema)
    return "\n".join(lines), of_records(
        {"round": int, "method": str, "address": str, "rows": int, "sent_bytes": int, "received_bytes": int, "host": str}, requests
    )


def stages(inside: Inside, took: Mapping[str, float], rows: int) -> list[wire.Stage]:
    """What each step of a statement took, in seconds; ``took`` has those beside its calls."""
    calls = sum(made.took_s for made in inside.made)
    found = [wire.Stage(name="read", took_s=took["read"], rows=-1)]
    found += [wire.Stage(name=f"call {made.method.python_name}", took_s=made.took_s, rows=made.rows) for made in inside.made]
    found.append(wire.Stage(name="table", took_s=max(took["run"] - calls, 0.0), rows=rows))
    return found


def _price(price: wire.Price) -> list[str]:
    """Return the price of a call and the share of each limit."""
    most = "" if price.exact else "at most "
    lines = [f"price      {price.formula}: {most}{price.rows:,} rows, {price.bytes:,} B, {price.scratch:,} B of scratch, {price.steps:,} steps"]
    return lines + [f"limit      {one.setting}: {one.value:,} of {one.limit:,} ({one.value / one.limit:.2%})" for one in price.limits]


def _called(made: Made) -> str:
    head: Any = made.request.head if isinstance(made.request, Frame) else made.request
    arrays = made.request.arrays if isinstance(made.request, Frame) else {}
    fields = [f"{field.name}={_short(value)}" for field, value in head.ListFields() if field.name != "space"]
    fields += [f"{name}={array.dtype}{list(array.shape)}" for name, array in arrays.items()]
    return f"{made.method.service.rpartition('.')[2]}.{made.method.name}({', '.join(fields)})"


def _short(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_short(one) for one in value[:8])}{', ...' if len(value) > 8 else ''}]"
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _shares(account: wire.ExplainReply, made: Made, schema: Schema | None) -> list[str]:
    """Where draws fall: the largest shares first."""
    if schema is None:
        return []
    names = [kind.name for kind in (schema.node_types if made.method.python_name == "sample_nodes" else schema.edge_types)]
    lines = []
    for one in sorted(account.shares, key=lambda one: -one.share)[:_MOST_SHARES]:
        where = names[one.type_id] + (f", part {one.part}" if one.part >= 0 else "")
        expected = f", {one.expected:,.1f} expected" if one.HasField("expected") else ""
        lines.append(f"share      {one.share:.4%} of {where}{expected}, {one.drawn:,} drawn")
    more = len(account.shares) - _MOST_SHARES
    return [*lines, *([f"           and {more} more"] if more > 0 else [])]
