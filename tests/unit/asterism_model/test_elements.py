"""Tests of elements and the names of the rows' own weights."""

from __future__ import annotations

import pytest

from asterism_model.elements import EDGE, NODE
from asterism_model.weight_names import canonical_weight_name
from asterism_proto.v1 import common_pb2 as common_pb


def test_elements_have_the_numbers_of_the_wire() -> None:
    assert (NODE, EDGE) == (common_pb.NODE, common_pb.EDGE)


@pytest.mark.parametrize(("name", "canonical"), [("", ""), ("weight", ""), ("rate", "rate")])
def test_own_weights_have_one_canonical_name(name: str, canonical: str) -> None:
    assert canonical_weight_name(name) == canonical
