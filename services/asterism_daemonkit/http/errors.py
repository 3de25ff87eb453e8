"""Replies to refused HTTP requests: JSON with the class of the error and a message.

A message reads ``field=value: expected ...``, as in errors over gRPC.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from asterism_daemonkit.rpc.grpc_server import typed_error
from asterism_proto.errors import AsterismError, SourceLocation

MAX_MESSAGE_CHARS = 1000
_MAX_VALUE_CHARS = 100
_UNPARSABLE = "There was an error parsing the body"
"""FastAPI's message for a body that is not text, or that is nested too deep."""
_UNION_MEMBER = re.compile(r"int|float|str|bool|constrained-\w+|(list|dict)\[.*\]|function-.*")
"""Names of a union's members, which pydantic puts between the fields of a path."""


def error_response(
    error: str,
    message: str,
    status: int,
    location: SourceLocation | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return the reply to a refused request."""
    return JSONResponse(
        {"error": error, "message": message, **({} if location is None else asdict(location))},
        status_code=status,
        headers=headers,
    )


def handle_error(_: Request, error: Exception) -> JSONResponse:
    """Return the reply to a request that raised an error."""
    asterism_error = typed_error(error)
    return error_response(
        type(asterism_error).__name__,
        asterism_error.message,
        asterism_error.http,
        asterism_error.place,
        retry_after_headers(asterism_error),
    )


def retry_after_headers(error: AsterismError) -> dict[str, str]:
    """Return the header with the seconds before which a retry is futile, if they are known."""
    seconds = math.ceil(error.retry_after_s)
    return {"Retry-After": str(seconds)} if seconds > 0 else {}


def add_error_handlers(app: FastAPI) -> None:
    """Make an application reply with JSON to every refused request."""

    def handle_invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return error_response("InvalidRequest", validation_message(error.errors()), 422)

    def handle_http_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        message, headers = str(error.detail), error.headers
        target = f"{request.method} {request.url.path[:200]}"
        if error.status_code == 404:
            message = f"{target}: no such route; {_suggestion(app, request.url.path)}"
        elif error.status_code == 405:
            methods = _methods(app, request.url.path)
            message = f"{target}: expected {' or '.join(methods) or 'another method'}"
            headers = {"allow": ", ".join(methods)} if methods else headers
        elif message == _UNPARSABLE:
            message = "body: expected JSON in UTF-8, nested at most a few hundred levels deep"
        return error_response(
            "NotFound" if error.status_code == 404 else "InvalidRequest",
            message,
            error.status_code,
            headers=headers,
        )

    app.add_exception_handler(AsterismError, handle_error)
    app.add_exception_handler(RequestValidationError, handle_invalid)
    app.add_exception_handler(HTTPException, handle_http_error)


def validation_message(faults: Sequence[Mapping[str, Any]]) -> str:
    """Return the message for a body or parameters that are not what a route expects.

    Parameters
    ----------
    faults : sequence of mapping
        pydantic's errors, at least one. The message describes the field of the first; a field that
        does not exist comes first, because it may be a missing one with a typing error.
    """
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    field = _field(first["loc"])
    if first["type"] == "json_invalid":
        return (
            f"body: expected JSON; {_lower(first['ctx']['error'])} at character "
            f"{first['loc'][-1] + 1}"
        )
    if first["type"] == "missing":
        if field == "body":
            return "body: expected a JSON object, but the request has no body"
        return f"{field}: expected a value, but the field is missing"
    value = repr(first.get("input"))
    if len(value) > _MAX_VALUE_CHARS:
        value = f"{value[:_MAX_VALUE_CHARS]}..."
    if first["type"] == "extra_forbidden":
        missing = [_field(fault["loc"]) for fault in faults if fault["type"] == "missing"]
        similar = difflib.get_close_matches(field, missing, n=1)
        remedy = (
            f"did you mean {similar[0]}?" if similar else "GET /docs describes those that there are"
        )
        return f"{field}={value}: no such field; {remedy}"[:MAX_MESSAGE_CHARS]
    expectations = dict.fromkeys(
        _expectation(fault["msg"]) for fault in faults if _field(fault["loc"]) == field
    )
    alternatives = " or ".join(expectations).replace(" or expected ", " or ")
    return f"{field}={value}: {alternatives}"[:MAX_MESSAGE_CHARS]


def _field(location: Sequence[str | int]) -> str:
    """Return the path of a field as it would be written in Python, such as ``nodes[3]``."""
    path = ""
    for position, part in enumerate(location):
        if isinstance(part, int):
            path += f"[{part}]"
        elif position == 0 and part in ("body", "query", "path"):
            continue
        elif not path:
            path = part
        elif not _UNION_MEMBER.fullmatch(part):
            path += f".{part}"
    return path or str(location[0])


def _expectation(message: str) -> str:
    """Return what a validator's message expects."""
    if message.startswith("Input should be "):
        return f"expected {message.removeprefix('Input should be ')}"
    noun, found, rest = message.partition(" should have ")
    return f"expected a {noun.lower()} with {rest}" if found else _lower(message)


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _suggestion(app: FastAPI, path: str) -> str:
    """Return routes that resemble a path, and where all of them are described."""
    close = difflib.get_close_matches(path[:200], app.openapi()["paths"], n=3)
    similar = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{similar}GET /docs describes every route"


def _methods(app: FastAPI, path: str) -> list[str]:
    """Return the methods of the documented routes that a path matches."""
    return sorted(
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if re.fullmatch(re.sub(r"\\{[^}]+\\}", "[^/]+", re.escape(template)), path)
        for method in operations
    )
