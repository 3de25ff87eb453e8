"""Addresses of the pages: the routes of `app.js`, and the objects that an address names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from asterism_proto.errors import AsterismError, InvalidRequest, NotFound
from graphd.pages.catalog_reader import PageData

_ROUTE = re.compile(r'^ {2}\["(/ui[^"]*)", \w+\],$', re.MULTILINE)
"""Pattern of a route in `app.js`."""
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)


class PageAddresses:
    """Addresses that have a page.

    Parameters
    ----------
    script : str
        Text of `app.js`, which lists the routes.
    page_data : PageData
    without : sequence of str
        Routes that this server does not have.
    """

    def __init__(self, script: str, page_data: PageData, without: Sequence[str] = ()) -> None:
        self._routes = [
            route.split("/") for route in _ROUTE.findall(script) if route not in without
        ]
        self._page_data = page_data

    def exists(self, path: str) -> bool:
        """Return whether a path is that of a page and the space, version or job exists.

        If metad does not respond, the answer is True: the page shows the error.
        """
        words = path.rstrip("/").split("/")
        matches = (_match(route, words) for route in self._routes)
        named = next((match for match in matches if match is not None), None)
        if named is None:
            return False
        try:
            return self._names_exist(named)
        except (NotFound, InvalidRequest):
            return False
        except AsterismError:
            return True

    def _names_exist(self, named: Mapping[str, str]) -> bool:
        for name in ("job", "version"):
            if name in named and not _NUMBER.fullmatch(named[name]):
                return False
        if "job" in named:
            self._page_data.job(int(named["job"]))
        if "space" in named:
            space = self._page_data.space(named["space"])
            if "version" in named:
                number = int(named["version"]) or space.version
                served = self._page_data.versions(space.name)
                return any(manifest.version == number for manifest in served)
        return True


def _match(route: Sequence[str], words: Sequence[str]) -> dict[str, str] | None:
    """Return the words of a path by the names in a route; None if they do not match."""
    if len(route) != len(words):
        return None
    named = {}
    for name, word in zip(route, words, strict=True):
        if name.startswith(":") and word:
            named[name[1:]] = word
        elif name != word:
            return None
    return named
