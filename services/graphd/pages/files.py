"""Static files of the web pages: one document, a style sheet and modules.

They are read once at start and served from memory with an ETag.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from asterism_proto.errors import NotFound

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src "
    "'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content security policy of the pages.

A browser may only fetch from the page's own origin, runs no inline script, and turns no text into
markup.
"""
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _StaticFile:
    body: bytes
    media_type: str
    etag: str


def router() -> APIRouter:
    """Return the router of ``/``, of the page, and of its files under ``/ui/static``.

    The page is served at every address below ``/ui``.
    """
    files = _read(resources.files("graphd.pages") / "static", "")
    api = APIRouter(include_in_schema=False)

    @api.get("/")
    def redirect_to_page() -> RedirectResponse:
        return RedirectResponse("/ui", status_code=307)

    @api.get("/ui/static/{name:path}")
    def get_file(name: str, request: Request) -> Response:
        file = files.get(name)
        if file is None:
            raise NotFound(f"there is no file {name!r} among the pages")
        return _file_response(file, request)

    @api.get("/ui")
    @api.get("/ui/{address:path}")
    def get_page(request: Request, address: str = "") -> Response:
        if address == "api" or address.startswith("api/"):
            raise NotFound(
                f"/ui/{address}: the pages have no such route; /openapi.json has those that "
                "there are"
            )
        return _file_response(files["index.html"], request)

    return api


def _read(folder: Traversable, prefix: str) -> dict[str, _StaticFile]:
    files: dict[str, _StaticFile] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            files |= _read(entry, f"{prefix}{entry.name}/")
        else:
            media_type = _MEDIA_TYPES.get(entry.name[entry.name.rfind(".") :])
            if media_type is not None:
                body = entry.read_bytes()
                files[prefix + entry.name] = _StaticFile(
                    body=body,
                    media_type=f"{media_type}; charset=utf-8",
                    etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
                )
    return files


def _file_response(file: _StaticFile, request: Request) -> Response:
    headers = {
        "etag": file.etag,
        "cache-control": "no-cache",
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.media_type, headers=headers)
