"""The folder of real graphs and DGL truth sets that lies beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"


def shared_or_skip(*parts: str) -> Path:
    """A path in the shared folder; where it is not there the test is skipped."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(('shared', *parts))} is not beside the checkout")
    return path
