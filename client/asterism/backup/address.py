"""Addresses as people write them."""

from __future__ import annotations

from pathlib import Path


def absolute_address(address: str | Path) -> str:
    """An address with its protocol: a path is a folder of this machine's, as an absolute one."""
    text = str(address)
    # Not `as_uri`: fsspec takes what is behind the protocol as it is written.
    return text.rstrip("/") if "://" in text else f"file://{Path(text).expanduser().absolute()}"
