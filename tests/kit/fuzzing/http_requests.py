"""Hostile HTTP requests to every route in the OpenAPI document of a daemon."""

from __future__ import annotations

import copy
import http.client
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np

_DEEP: Any = []
for _ in range(300):
    _DEEP = [_DEEP]
_TEXTS = [
    "",
    "0",
    "-1",
    "1",
    "3.5",
    "1e9",
    "nope",
    "x" * 3000,
    "..",
    "../../etc/passwd",
    "a\x00b",
    "%00",
    "１２",
    "'; DROP SPACE x",
    "NaN",
    "\ud800",
    "true",
    "*",
]
_NUMBERS = ["9" * 30, str(1 << 63), str(1 << 64), "-" + "9" * 30]
VALUES: Sequence[Any] = [
    *_TEXTS,
    *_NUMBERS,
    None,
    True,
    -1,
    0,
    1,
    1 << 31,
    1 << 63,
    1 << 64,
    10**400,
    0.5,
    1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[]],
    [None],
    [1, "a"],
    [1, 2.5],
    [1 << 70],
    ["\ud800"],
    [[1], [2, 3]],
    {"a": 1},
    {"": {}},
    list(range(5000)),
    _DEEP,
]
_BODIES = (
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"1",
    b"\xff\xfe",
    b'{"space": "\\ud800"}',
    b"[" * 5000,
    b'{"a": ' * 500,
    b"x" * 5000,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One HTTP request."""

    method: str
    target: str
    body: bytes
    description: str


def requests(
    document: Mapping[str, Any],
    rng: np.random.Generator,
    *,
    values: Mapping[str, str],
    bodies: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[HttpRequest]:
    """Yield mutated requests to all routes in turn, without end."""
    routes = [
        (method.upper(), path, route)
        for path, methods in sorted(document["paths"].items())
        for method, route in sorted(methods.items())
    ]
    while True:
        for method, path, route in routes:
            yield _mutate(method, path, route, rng, values, bodies.get(path, ()))


def _mutate(
    method: str,
    path: str,
    route: Mapping[str, Any],
    rng: np.random.Generator,
    values: Mapping[str, str],
    bodies: Sequence[Mapping[str, Any]],
) -> HttpRequest:
    target, query, edits = path, [], []
    for parameter in route.get("parameters", []):
        name = parameter["name"]
        text = values.get(name, "")
        if rng.integers(3) == 0:
            text = str(_choose(rng, [*_TEXTS, *_NUMBERS]))
            edits.append(f"{name}={text[:40]!r}")
        encoded = text.encode("utf-8", "surrogatepass")
        if parameter["in"] == "path":
            target = target.replace(f"{{{name}}}", quote(encoded, safe=""))
        elif rng.integers(2):
            query += [(name, encoded)] * int(rng.integers(1, 3))
    body = b""
    if bodies:
        body, edit = _body(_choose(rng, bodies), rng)
        edits.append(edit)
    return HttpRequest(
        method=method,
        target=target + (f"?{urlencode(query)}" if query else ""),
        body=body,
        description=f"{method} {path}: {', '.join(edits)}",
    )


def _body(valid: Mapping[str, Any], rng: np.random.Generator) -> tuple[bytes, str]:
    if rng.integers(8) == 0:
        body_bytes = _choose(rng, _BODIES)
        return body_bytes, f"body {body_bytes[:40]!r}"
    body, edits = copy.deepcopy(dict(valid)), []
    for _ in range(int(rng.integers(1, 3))):
        path, target = "", body
        while True:
            key = _choose(rng, [*target, "more"])
            path += f".{key}"
            if isinstance(target.get(key), dict) and target[key] and rng.integers(4):
                target = target[key]
                continue
            break
        target[key] = _choose(rng, VALUES)
        edits.append(f"{path[1:]}={str(target[key])[:40]!r}")
    return json.dumps(body).encode(), ", ".join(edits)


def _choose(rng: np.random.Generator, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def send_request(connection: http.client.HTTPConnection, request: HttpRequest) -> tuple[int, bytes]:
    """Send a request, and return the status and the body of the reply."""
    headers = {"content-type": "application/json"} if request.body else {}
    connection.request(request.method, request.target, request.body or None, headers)
    with connection.getresponse() as reply:
        return reply.status, reply.read()
