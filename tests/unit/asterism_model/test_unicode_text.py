"""Tests that strings with a lone surrogate are refused with argument and position."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from asterism_model import unicode_text
from asterism_proto.errors import InvalidRequest


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("ab\udfff", "v='ab\\udfff'"),
        (["a", "\ud800"], "v[1]='\\ud800'"),
        ({"k": {"of": ("x", "\ud800")}}, "v['k']['of'][1]='\\ud800'"),
        ({"\ud800": 1}, "v: key='\\ud800'"),
        (np.array([["a"], ["\ud800"]]), "v[1][0]='\\ud800'"),
        (np.array(["a", None, "\ud800"], object), "v[2]='\\ud800'"),
    ],
)
def test_lone_surrogate_is_refused_with_its_location(value: object, place: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        unicode_text.check("v", value)
    assert error.value.message.startswith(f"{place}: expected Unicode text")
    error.value.message.encode()


def test_other_values_pass() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    unicode_text.check(
        "v", {"a": ["\U0001f600", "Zoë", "\0"], "b": deep, "c": np.arange(3), "d": None}
    )


def test_the_position_is_given_in_a_long_text() -> None:
    error = unicode_text.surrogate_error("where", "x" * 500 + "\ud800" + "y" * 500)
    assert error is not None
    assert "position 500, '\\ud800'" in error.message
    assert len(error.message) < 300


@unicode_text.refuse_surrogates
class Sender:
    def send(self, name: str, options: dict[str, str] | None = None) -> bytes:
        """Return what is sent."""
        return (name + "".join((options or {}).values())).encode()

    def items(self, name: str) -> Iterator[bytes]:
        """Yield what is sent."""
        yield name.encode()

    def read(self) -> bytes:
        """Return a text that is no argument."""
        return "a\ud800".encode()

    def narrow(self, name: str) -> bytes:
        """Return a text in another encoding."""
        return name.encode("ascii")


def test_methods_of_a_checked_class_name_the_argument() -> None:
    sender = Sender()
    assert sender.send("é") == "é".encode()
    with pytest.raises(InvalidRequest, match=r"name='\\ud800'.*position 0"):
        sender.send("\ud800")
    with pytest.raises(InvalidRequest, match=r"options\['k'\]='a\\ud800'.*position 1"):
        sender.send("a", options={"k": "a\ud800"})
    with pytest.raises(InvalidRequest, match="name="):
        list(sender.items("\ud800"))
    with pytest.raises(InvalidRequest, match="text="):
        sender.read()


def test_errors_of_other_encodings_stay_as_they_are() -> None:
    with pytest.raises(UnicodeEncodeError):
        Sender().narrow("é")
