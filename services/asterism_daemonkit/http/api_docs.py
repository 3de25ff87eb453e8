"""Page ``/docs``: Swagger UI over a daemon's OpenAPI document, with files of this package only."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib import resources

from fastapi import APIRouter, Request, Response

from asterism_daemonkit.http.static_files import StaticFile, read_folder, static_file
from asterism_proto.errors import NotFound

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Content security policy of the page: a browser requests nothing from other hosts."""
_PAGE = """<!doctype html>
<html lang="en" data-session="{session}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""


@cache
def _files() -> dict[str, StaticFile]:
    """Return the files of Swagger UI; they are read when a browser first opens the page."""
    return read_folder(resources.files("asterism_daemonkit.http") / "swagger_ui")


def router(title: str, *, session_path: str = "") -> APIRouter:
    """Return the router of ``/docs`` and its files.

    Parameters
    ----------
    title : str
        Title of the page.
    session_path : str
        Path of a browser's session, with the token that "Try it out" sends; empty: there is none.
    """
    html = _PAGE.format(title=escape(title), session=escape(session_path))
    page = static_file(html.encode(), "text/html")
    api = APIRouter(include_in_schema=False)

    @api.get("/docs")
    def get_page(request: Request) -> Response:
        return page.response(request, CONTENT_SECURITY_POLICY)

    @api.get("/docs/{name}")
    def get_file(name: str, request: Request) -> Response:
        files = _files()
        if name not in files:
            raise NotFound(f"GET /docs/{name[:200]}: no such file; GET /docs describes every route")
        return files[name].response(request, CONTENT_SECURITY_POLICY)

    return api
