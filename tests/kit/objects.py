"""An S3 object store: a moto server process on a free port, inspected over plain HTTP."""

from __future__ import annotations

import http.client
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from xml.etree import ElementTree

from tests.kit.ports import ReservedPort
from tests.kit.waiting import HANG_S, wait_until

if TYPE_CHECKING:
    from tests.kit.certificates import Authority

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYhunter2"
_AUTH_HEADERS = {
    "Authorization": "AWS account:signature",
    "Content-Type": "application/octet-stream",
}
"""Headers of a signed request; the server does not verify signatures."""


class ObjectStore:
    """An object store with one bucket that is removed after the block.

    Parameters
    ----------
    folder : Path
        Folder of its log.
    authority : Authority, optional
        Serve HTTPS with a certificate of this authority.
    names : sequence of str
        Names and addresses in the certificate. Default: all of this host.
    """

    bucket = "kept"

    def __init__(
        self, folder: Path, authority: Authority | None = None, names: Sequence[str] = ()
    ) -> None:
        self._authority, self._names = authority, names
        self._url = "http" if authority is None else "https"
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self._log = folder / "objects.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Address of the bucket, in the format of fsspec."""
        return f"s3://{self.bucket}"

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that a process needs to access the store."""
        return {
            "AWS_ENDPOINT_URL": f"{self._url}://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "AKIATESTTESTTESTTEST",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
            if self._authority is not None:
                names = {"names": self._names} if self._names else {}
                files = self._authority.issue("object-store", **names)
                command += ["-s", "-c", str(files.cert), "-k", str(files.key)]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until(
                self._has_bucket,
                lambda: f"the object store answers; {self._log.read_text()[-2000:]}",
                poll_interval_s=0.05,
                ignored=OSError,
            )
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _has_bucket(self) -> bool:
        """Create the bucket; return whether it exists."""
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"the object store has ended; {self._log.read_text()[-2000:]}")
        self._ask("PUT", "")
        return True

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._reserved.close()

    def keys(self, prefix: str = "") -> list[str]:
        """Return the names of all objects with a prefix."""
        return list(self.write_times(prefix))

    def write_times(self, prefix: str = "") -> dict[str, str]:
        """Return the names of all objects with a prefix, and the time of the last write of each."""
        times: dict[str, str] = {}
        token = ""
        while True:
            page = ElementTree.fromstring(self._ask("GET", f"?list-type=2&prefix={prefix}{token}"))
            space = page.tag.partition("}")[0] + "}"
            times |= {
                str(entry.findtext(f"{space}Key")): str(entry.findtext(f"{space}LastModified"))
                for entry in page.iter(f"{space}Contents")
            }
            following = page.findtext(f"{space}NextContinuationToken")
            if not following:
                return times
            token = f"&continuation-token={following}"

    def count_requests(self, method: str, prefix: str) -> int:
        """Return how many requests of a method the store has received for objects with a prefix."""
        return self._log.read_text().count(f'"{method} /{self.bucket}/{prefix}')

    def uploads(self) -> list[str]:
        """Return the names of objects with an unfinished multipart upload."""
        page = ElementTree.fromstring(self._ask("GET", "?uploads"))
        return [str(key.text) for key in page.iter(page.tag.partition("}")[0] + "}Key")]

    def buckets(self) -> int:
        """Return the number of buckets."""
        with self._send("GET", "") as reply:
            page = ElementTree.fromstring(reply.read())
        return sum(1 for _ in page.iter(page.tag.partition("}")[0] + "}Bucket"))

    def get(self, key: str) -> bytes:
        """Return the content of an object."""
        return self._ask("GET", f"/{key}")

    def modified_at(self, key: str) -> str:
        """Return the time of the last write of an object."""
        with self._send("HEAD", f"{self.bucket}/{key}") as reply:
            return str(reply.headers["Last-Modified"])

    def put(self, key: str, content: bytes) -> None:
        """Write an object."""
        self._ask("PUT", f"/{key}", content)

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._ask("DELETE", f"/{key}")

    def _ask(self, method: str, suffix: str, body: bytes | None = None) -> bytes:
        with self._send(method, self.bucket + suffix, body) as reply:
            content: bytes = reply.read()
        return content

    def _send(self, method: str, path: str, body: bytes | None = None) -> http.client.HTTPResponse:
        request = urllib.request.Request(
            f"{self._url}://127.0.0.1:{self.port}/{path}",
            data=body,
            method=method,
            headers=_AUTH_HEADERS,
        )
        context = (
            ssl.create_default_context(cafile=str(self._authority.file))
            if self._authority is not None
            else None
        )
        reply: http.client.HTTPResponse = urllib.request.urlopen(
            request, timeout=HANG_S, context=context
        )
        return reply
