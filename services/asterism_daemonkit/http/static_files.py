"""Files of a package that an HTTP server serves from memory, each with an ETag."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from fastapi import Request, Response

_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file in memory."""

    body: bytes
    media_type: str
    etag: str

    def response(
        self, request: Request, content_security_policy: str, *, status_code: int = 200
    ) -> Response:
        """Return the file, or status 304 if the browser has it already.

        A page with another ``status_code``, such as 404, is always sent.
        """
        headers = {
            "etag": self.etag,
            "cache-control": "no-cache",
            "content-security-policy": content_security_policy,
            "x-content-type-options": "nosniff",
            "referrer-policy": "no-referrer",
            "cross-origin-opener-policy": "same-origin",
            "cross-origin-resource-policy": "same-origin",
        }
        if status_code == 200 and request.headers.get("if-none-match") == self.etag:
            return Response(status_code=304, headers=headers)
        return Response(
            self.body, status_code=status_code, media_type=self.media_type, headers=headers
        )


def static_file(body: bytes, media_type: str) -> StaticFile:
    """Return a text file with its ETag."""
    return StaticFile(
        body=body,
        media_type=f"{media_type}; charset=utf-8",
        etag=f'"{hashlib.sha256(body).hexdigest()[:32]}"',
    )


def read_folder(folder: Traversable, prefix: str = "") -> dict[str, StaticFile]:
    """Return the files of web pages below a folder, by their path below it."""
    files: dict[str, StaticFile] = {}
    for entry in folder.iterdir():
        if entry.is_dir():
            files |= read_folder(entry, f"{prefix}{entry.name}/")
        elif media_type := _MEDIA_TYPES.get(entry.name[entry.name.rfind(".") :]):
            files[prefix + entry.name] = static_file(entry.read_bytes(), media_type)
    return files
