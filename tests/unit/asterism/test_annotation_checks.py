from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from asterism.calls.annotation_checks import check_argument_types
from asterism_proto.errors import InvalidRequest


@check_argument_types
class Calls:
    """Calls with one argument of each checked annotation."""

    def call(
        self,
        n: int,
        *,
        flag: bool = True,
        where: str = "",
        sort: str | None = None,
        timeout_s: float = 0.5,
        counts: Sequence[int] = (),
    ) -> tuple[Any, ...]:
        """Return the arguments."""
        return n, flag, where, sort, timeout_s, counts

    def rows(self, n: int) -> Iterator[int]:
        """Yield n rows."""
        yield from range(n)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n": "x"}, "n='x': expected an integer"),
        ({"n": True}, "n=True: expected an integer"),
        ({"n": 1.0}, "n=1.0: expected an integer"),
        ({"n": 1, "flag": None}, "flag=None: expected True or False"),
        ({"n": 1, "flag": 2}, "flag=2: expected True or False"),
        ({"n": 1, "where": b"a"}, "where=b'a': expected a string"),
        ({"n": 1, "sort": 3}, "sort=3: expected a string"),
        ({"n": 1, "timeout_s": "0.5"}, "timeout_s='0.5': expected a number"),
        ({"n": 1, "timeout_s": 1j}, "timeout_s=1j: expected a number"),
        ({"n": 1, "counts": 3}, "counts=3: expected a list"),
        ({"n": 1, "counts": {"a": 1}}, "counts=.*: expected a list"),
    ],
)
def test_arguments_of_another_type_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        Calls().call(**arguments)


def test_scalars_and_arrays_of_numpy_are_converted() -> None:
    found = Calls().call(np.array(3), flag=np.True_, where=None, counts=np.array([1, 2]))  # type: ignore[arg-type]
    assert found == (3, True, "", None, 0.5, [1, 2])
    assert [type(value) for value in found[:2]] == [int, bool]
    assert Calls().call(np.uint8(4))[0] == 4


def test_generators_check_at_their_first_row() -> None:
    rows = Calls().rows("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="n='x': expected an integer"):
        next(rows)
    assert list(Calls().rows(2)) == [0, 1]
