"""Static files of the web pages: one document, a style sheet and modules.

They are read once at start and served from memory with an ETag.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from asterism_daemonkit.http.static_files import read_folder, static_file
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
_ROOT = b'<html lang="en">'
_ROOT_WITH_SIGN_IN = b'<html lang="en" data-sign-in>'
"""Root element of the page where people sign in; `session.js` looks at it."""


def router(page_exists: Callable[[str], bool], *, sign_in_page: str = "") -> APIRouter:
    """Return the router of ``/``, of the page, and of its files under ``/ui/static``.

    The page is served at every address below ``/ui``.

    Parameters
    ----------
    page_exists : callable
        Returns whether a path has a page. If it has none, the status is 404, and the page
        explains what is missing.
    sign_in_page : str
        Path of the sign-in page. Empty: there is none, and the pages ask for no session.
    """
    files = read_folder(resources.files("graphd.pages") / "static")
    index = files["index.html"]
    if sign_in_page:
        index = static_file(index.body.replace(_ROOT, _ROOT_WITH_SIGN_IN, 1), "text/html")
    api = APIRouter(include_in_schema=False)

    @api.get("/")
    def redirect_to_page() -> RedirectResponse:
        return RedirectResponse("/ui", status_code=307)

    @api.get("/ui/static/{name:path}")
    def get_file(name: str, request: Request) -> Response:
        file = files.get(name)
        if file is None:
            raise NotFound(f"path=/ui/static/{name}: expected a file of the pages")
        return file.response(request, CONTENT_SECURITY_POLICY)

    if sign_in_page:

        @api.get(sign_in_page)
        def get_sign_in_page(request: Request) -> Response:
            return files["sign-in.html"].response(request, CONTENT_SECURITY_POLICY)

    @api.get("/ui")
    @api.get("/ui/{address:path}")
    def get_page(request: Request, address: str = "") -> Response:
        if address == "api" or address.startswith("api/"):
            raise NotFound(
                f"path=/ui/{address}: expected a route of the pages; /openapi.json lists them"
            )
        if not page_exists(f"/ui/{address}"):
            return index.response(request, CONTENT_SECURITY_POLICY, status_code=404)
        return index.response(request, CONTENT_SECURITY_POLICY)

    return api


def app_script() -> str:
    """Return the text of `app.js`."""
    return (resources.files("graphd.pages") / "static" / "app.js").read_text()
