"""Tests of the tree of errors: documented, complete, and equal in client and services."""

from __future__ import annotations

import http
import re

import grpc
import pytest

from asterism_proto import errors
from asterism_proto.errors import ALL, AsterismError, Retry, from_status


def defined_classes() -> set[type[AsterismError]]:
    return {
        value
        for value in vars(errors).values()
        if isinstance(value, type)
        and issubclass(value, AsterismError)
        and value is not AsterismError
    }


def documented_tree() -> dict[str, tuple[str, int, str]]:
    """Return the documented tree: class -> (gRPC code, HTTP code, retry policy)."""
    rows = re.findall(r"[├└]─ (\w+) +([A-Z_]+) +(\d+) +(\w+)", errors.__doc__ or "")
    return {name: (code, int(status), retry) for name, code, status, retry in rows}


def class_of_code(cls: type[AsterismError]) -> type[AsterismError]:
    """Return the class that stands for the code of a class: its base if they share the code."""
    base = cls.__mro__[1]
    return base if base in ALL and base.code == cls.code else cls


def test_every_class_of_the_tree_is_listed_once() -> None:
    assert set(ALL) == defined_classes()
    assert len(set(ALL)) == len(ALL)


def test_documented_tree_matches_the_classes() -> None:
    assert documented_tree() == {cls.__name__: (cls.code, cls.http, cls.retry.value) for cls in ALL}


@pytest.mark.parametrize("cls", ALL)
def test_class_has_valid_codes_and_a_default_message(cls: type[AsterismError]) -> None:
    assert cls.code in grpc.StatusCode.__members__
    assert http.HTTPStatus(cls.http) >= 400
    assert isinstance(cls.retry, Retry)
    assert cls().message == (cls.__doc__ or "").splitlines()[0]


@pytest.mark.parametrize("cls", ALL)
def test_an_error_comes_back_as_the_class_that_was_raised(cls: type[AsterismError]) -> None:
    restored = from_status(cls.code, "space 'x' is not there", cls.__name__)
    assert type(restored) is cls
    assert restored.message == "space 'x' is not there"


@pytest.mark.parametrize("cls", ALL)
def test_an_error_of_an_unknown_class_comes_back_by_its_code(cls: type[AsterismError]) -> None:
    expected = class_of_code(cls)
    assert type(from_status(cls.code, "m", "FromTheFuture")) is expected
    assert type(from_status(cls.code, "m")) is expected


def test_two_classes_share_a_code_only_if_one_refines_it() -> None:
    owners = [cls for cls in ALL if class_of_code(cls) is cls]
    assert len({cls.code for cls in owners}) == len(owners)
    assert {cls for cls in ALL if cls not in owners} == {errors.QuotaExceeded}


@pytest.mark.parametrize(
    "code", sorted(set(grpc.StatusCode.__members__) - {cls.code for cls in ALL} - {"OK"})
)
def test_unused_grpc_codes_map_to_an_error_class(code: str) -> None:
    restored = from_status(code, "m")
    assert type(restored) is (errors.Unavailable if code == "CANCELLED" else errors.Internal)
    assert code in restored.message
