"""Tests of the folder that `asterism.open` is given, before a service starts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import asterism
from asterism import aio
from asterism_proto.errors import InvalidRequest, NotFound

ODD = [
    ("", r"path='': expected a folder; '\.' is the current one"),
    ("a\0b", r"path='a\\x00b': expected a folder, as a string without NUL"),
    (b"graphs", r"path=b'graphs': expected a folder, as a string or a Path"),
    (None, "path=None: expected a folder, as a string or a Path"),
    (7, "path=7: expected a folder, as a string or a Path"),
]


@pytest.mark.parametrize("mode", ["w", "r+", "r"])
@pytest.mark.parametrize(("path", "message"), ODD)
def test_a_path_that_names_no_folder_is_refused(
    path: object, message: str, mode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match=f"^{message}$"):
        asterism.open(path, mode=mode)  # type: ignore[call-overload]
    assert list(tmp_path.iterdir()) == []


def test_an_awaited_open_refuses_an_empty_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        await aio.open("")

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidRequest, match="path='': expected a folder"):
        asyncio.run(run())
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_the_home_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    for path in ("~", Path("~"), "~/graphs"):
        missing = str(path).replace("~", f"{tmp_path}/home")
        with pytest.raises(NotFound, match=f"^{missing}: "):
            asterism.open(path, mode="r+")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
