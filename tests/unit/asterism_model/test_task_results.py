"""Tests of task results: one record, with one form in messages."""

from __future__ import annotations

from dataclasses import fields

import pytest

from asterism_model.elements import Element
from asterism_model.task_results import ExportedFile, PartUnits, TaskResult, TypeAudit
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import common_pb2 as common_pb

AUDIT = TypeAudit(element=Element.NODE, type_id=1, count=5, positive=4, weight=2.5, table_tv=1e-17)
FILE = ExportedFile(
    path="p00000-n0-weight.csv",
    part=0,
    element=Element.NODE,
    type_id=0,
    weight_name="weight",
    format="csv",
    rows=5,
    bytes=80,
    sha256="00",
)
RESULT = TaskResult(
    audit=(AUDIT,),
    files_read=3,
    bytes_read=900,
    folder="exports/a",
    files=(FILE,),
    bytes_before=9,
    bytes_after=4,
    units=(PartUnits(part=0, linked=4, built=2, bytes_linked=900, bytes_built=30),),
)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (TypeAudit, common_pb.TypeAudit),
        (ExportedFile, common_pb.ExportedFile),
        (PartUnits, common_pb.PartUnits),
    ],
)
def test_records_have_the_fields_of_their_messages(record: type, message: type) -> None:
    assert {field.name for field in fields(record)} == {
        field.name
        for field in message.DESCRIPTOR.fields  # type: ignore[attr-defined]
    }


def test_a_result_survives_messages() -> None:
    message = RESULT.to_proto()
    assert (message.audit[0].element, message.files[0].element) == (common_pb.NODE, common_pb.NODE)
    assert TaskResult.from_proto(message) == RESULT
    assert TaskResult.from_proto(common_pb.TaskResult()) == TaskResult()


def test_json_has_the_numbers_of_messages() -> None:
    assert common_pb.TypeAudit(**AUDIT.to_dict()) == RESULT.to_proto().audit[0]
    assert FILE.to_dict()["element"] == 1


def test_an_unknown_element_names_its_record() -> None:
    with pytest.raises(InvalidRequest, match="an audit: element 0"):
        TaskResult.from_proto(common_pb.TaskResult(audit=[common_pb.TypeAudit(type_id=1)]))
    with pytest.raises(InvalidRequest, match=r"exported file a\.csv: element 0"):
        TaskResult.from_proto(common_pb.TaskResult(files=[common_pb.ExportedFile(path="a.csv")]))
