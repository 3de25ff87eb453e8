"""The page itself: one document, a style, modules; read once at the start and served from memory, each with its digest."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from asterism_proto.errors import NotFound

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What a browser may do for a page: nothing but to fetch from where it came from; no script within it, no text that becomes markup."""
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    body: bytes
    kind: str
    tag: str


def router() -> APIRouter:
    """``/`` and ``/ui``: the page, whatever its address below ``/ui``, and its files under ``/ui/static``."""
    files = _read(resources.files("graphd.pages") / "static", "")
    api = APIRouter(include_in_schema=False)

    @api.get("/")
    def to_the_page() -> RedirectResponse:
        return RedirectResponse("/ui", status_code=307)

    @api.get("/ui/static/{name:path}")
    def get_file(name: str, request: Request) -> Response:
        found = files.get(name)
        if found is None:
            raise NotFound(f"there is no file {name!r} among the pages")
        return _answer(found, request)

    @api.get("/ui")
    @api.get("/ui/{address:path}")
    def get_page(request: Request, address: str = "") -> Response:
        if address == "api" or address.startswith("api/"):
            raise NotFound(f"/ui/{address}: the pages have no such route; /openapi.json has those that there are")
        return _answer(files["index.html"], request)

    return api


def _read(folder: Traversable, prefix: str) -> dict[str, _File]:
    found: dict[str, _File] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            found |= _read(entry, f"{prefix}{entry.name}/")
        else:
            kind = _KINDS.get(entry.name[entry.name.rfind(".") :])
            if kind is not None:
                body = entry.read_bytes()
                found[prefix + entry.name] = _File(body=body, kind=f"{kind}; charset=utf-8", tag=f'"{hashlib.sha256(body).hexdigest()[:32]}"')
    return found


def _answer(file: _File, request: Request) -> Response:
    headers = {
        "etag": file.tag,
        "cache-control": "no-cache",
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.kind, headers=headers)
