"""Addresses as people write them."""

from __future__ import annotations

from pathlib import Path


def full(address: str | Path) -> str:
    """An address with its protocol: a path is a folder of this machine's, as an absolute one."""
    text = str(address)
    return text.rstrip("/") if "://" in text else Path(text).expanduser().absolute().as_uri()
