"""EXPLAIN and PROFILE: the call of a statement, its requests to storageds, and timings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from asterism_model.schema import Schema
from asterism_proto.framing import Frame
from asterism_proto.v1 import graphd_pb2 as graphd_pb
from graphd.query.ast import Body
from graphd.query.table import ResultTable, table_from_rows
from graphd.query.transport import QueryTransport, RecordedCall

_MAX_SHARES = 20
"""Maximum lines of a plan about shares of draws."""


def explain_plan(
    body: Body, transport: QueryTransport, schema: Schema | None, version: int = 0
) -> tuple[str, ResultTable]:
    """Return a statement's plan as lines, and one row per request to a storaged.

    Parameters
    ----------
    body : Body
    transport : QueryTransport
        Transport with the calls that the statement made, or started with.
    schema : Schema, optional
        Schema of the statement's space.
    version : int
        Version that the statement read; 0 for the current one.
    """
    lines, requests = (
        [f"statement  {body}", *(f"call       {_call_text(call)}" for call in transport.calls)],
        [],
    )
    first_call = transport.calls[0] if transport.calls else None
    explanation = None if first_call is None else transport.explain_call(first_call, version)
    if explanation is not None and first_call is not None:
        lines.append(
            f"version    {explanation.version}, {explanation.reply_bytes:,} bytes of reply"
        )
        lines += _price(explanation.price) if explanation.HasField("price") else []
        for storage_request in explanation.storage_requests:
            lines.append(
                f"round {storage_request.round}    {storage_request.method} at "
                f"{storage_request.address or storage_request.host}: "
                f"{storage_request.rows:,} rows, {storage_request.bytes_sent:,} B out, "
                f"{storage_request.bytes_received:,} B in"
            )
            requests.append(
                (
                    storage_request.round,
                    storage_request.method,
                    storage_request.address,
                    storage_request.rows,
                    storage_request.bytes_sent,
                    storage_request.bytes_received,
                    storage_request.host,
                )
            )
        lines += _shares(explanation, first_call, schema)
    return "\n".join(lines), table_from_rows(
        {
            "round": int,
            "method": str,
            "address": str,
            "rows": int,
            "sent_bytes": int,
            "received_bytes": int,
            "host": str,
        },
        requests,
    )


def profile_stages(
    transport: QueryTransport, elapsed: Mapping[str, float], rows: int
) -> list[graphd_pb.Stage]:
    """Return the seconds of each stage; ``elapsed`` has those of the stages besides calls."""
    calls_s = sum(call.elapsed_s for call in transport.calls)
    stages = [graphd_pb.Stage(name="read", took_s=elapsed["read"], rows=-1)]
    stages += [
        graphd_pb.Stage(
            name=f"call {call.method.python_name}", took_s=call.elapsed_s, rows=call.rows
        )
        for call in transport.calls
    ]
    stages.append(
        graphd_pb.Stage(name="table", took_s=max(elapsed["run"] - calls_s, 0.0), rows=rows)
    )
    return stages


def _price(price: graphd_pb.Price) -> list[str]:
    """Return the price of a call and the share of each limit."""
    prefix = "" if price.exact else "at most "
    lines = [
        (
            f"price      {price.formula}: {prefix}{price.rows:,} rows, {price.bytes:,} B, "
            f"{price.scratch:,} B of scratch, {price.steps:,} steps"
        )
    ]
    return lines + [
        (
            f"limit      {limit.setting}: {limit.value:,} of {limit.limit:,} "
            f"({limit.value / limit.limit:.2%})"
        )
        for limit in price.limits
    ]


def _call_text(call: RecordedCall) -> str:
    head = call.request.head if isinstance(call.request, Frame) else call.request
    arrays = call.request.arrays if isinstance(call.request, Frame) else {}
    fields = [
        f"{field.name}={_short(value)}"
        for field, value in head.ListFields()
        if field.name != "space"
    ]
    fields += [f"{name}={array.dtype}{list(array.shape)}" for name, array in arrays.items()]
    return f"{call.method.service.rpartition('.')[2]}.{call.method.name}({', '.join(fields)})"


def _short(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (
            f"[{', '.join(_short(item) for item in value[:8])}{', ...' if len(value) > 8 else ''}]"
        )
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _shares(
    explanation: graphd_pb.ExplainReply, call: RecordedCall, schema: Schema | None
) -> list[str]:
    """Return the largest shares of draws, by type and partition."""
    if schema is None:
        return []
    names = [
        schema_type.name
        for schema_type in (
            schema.node_types if call.method.python_name == "sample_nodes" else schema.edge_types
        )
    ]
    lines = []
    for draw_share in sorted(explanation.shares, key=lambda one: -one.share)[:_MAX_SHARES]:
        location = names[draw_share.type_id] + (
            f", part {draw_share.part}" if draw_share.part >= 0 else ""
        )
        expected = (
            f", {draw_share.expected:,.1f} expected" if draw_share.HasField("expected") else ""
        )
        lines.append(
            f"share      {draw_share.share:.4%} of {location}{expected}, {draw_share.drawn:,} drawn"
        )
    remaining = len(explanation.shares) - _MAX_SHARES
    return [*lines, *([f"           and {remaining} more"] if remaining > 0 else [])]
