"""Access to the folder next to the checkout with real graphs and DGL reference data."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"


def shared_or_skip(*parts: str) -> Path:
    """Return a path in the shared folder; skip the test if it does not exist."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(('shared', *parts))} is not beside the checkout")
    return path
