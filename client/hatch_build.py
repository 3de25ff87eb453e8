"""README and addresses in the metadata of the distribution `asterism-graph`.

A package index shows the README without the files that it links to. If the environment variable
``ASTERISM_REPOSITORY`` has the public address of the repository, the links lead there, and the
metadata lists the addresses of the project. Otherwise the links become plain text.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "ASTERISM_REPOSITORY"
_PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)([^)\s]+)\)\n*")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)([^)\s]+)\)")


class ReadmeAndUrls(MetadataHookInterface):
    """Sets ``readme`` and ``urls`` of the project's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the fields to the metadata, in place.

        Raises
        ------
        ValueError
            The address of the repository is not one of HTTPS.
        """
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = os.environ.get(REPOSITORY, "").rstrip("/")  # noqa: TID251 - at a build
        if repository:
            if not repository.startswith("https://"):
                raise ValueError(f"{REPOSITORY}={repository!r}: expected an address of https://")
            metadata["urls"] = project_urls(repository)
            text = with_public_links(text, repository, f"v{metadata['version']}")
        else:
            metadata["urls"] = {}
            text = without_links(text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def project_urls(repository: str) -> dict[str, str]:
    """Return the addresses that a package index shows beside a project."""
    files = f"{repository}/blob/main"
    return {
        "Source": repository,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{files}/SECURITY.md",
    }


def with_public_links(text: str, repository: str, tag: str) -> str:
    """Return a Markdown text with links to files of a tag in place of its relative links."""
    text = _PICTURE.sub(rf"![\1]({repository}/raw/{tag}/\2)\n\n", text)
    return _LINK.sub(rf"[\1]({repository}/blob/{tag}/\2)", text)


def without_links(text: str) -> str:
    """Return a Markdown text without pictures and relative links; the texts of the links stay."""
    return _LINK.sub(r"\1", _PICTURE.sub("", text))
