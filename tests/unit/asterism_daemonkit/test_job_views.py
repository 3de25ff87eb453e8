"""Tests of the views of jobs, which the jobs endpoint and the pages share."""

from __future__ import annotations

from asterism_daemonkit.http.job_views import TaskView, job_view, task_view
from asterism_model.elements import Element
from asterism_model.task_results import ExportedFile, PartUnits, TaskResult
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import presenters

UNITS = PartUnits(part=3, linked=1, built=28, bytes_linked=10, bytes_built=3_400_000)


def task(result: TaskResult | None = None) -> common_pb.Task:
    """Return a finished task, or a running one without a result."""
    message = common_pb.Task(
        task_id=5,
        host="uuid-0",
        parts=[3, 1],
        attempt=2,
        state=common_pb.RUNNING if result is None else common_pb.FINISHED,
        phase="merge 3",
        rows_done=10,
        rows_total=40,
        causes=["disk full"],
    )
    if result is not None:
        message.result.CopyFrom(result.to_proto())
    return message


def test_a_running_task_has_its_phase_and_a_description() -> None:
    view = task_view(task())
    assert (view.phase, view.activity) == ("merge 3", "alias table: write 3")
    assert (view.parts, view.attempt, view.causes) == ([3, 1], 2, ["disk full"])
    assert (view.result, view.result_lines) == (None, [])


def test_a_result_is_a_record_and_lines_of_text() -> None:
    view = task_view(task(TaskResult(units=(UNITS,), bytes_before=2_000, bytes_after=1_000)))
    assert view.result is not None
    assert [units.built for units in view.result.units] == [28]
    assert view.result_lines == [
        "28 units built (3,400,000 bytes), 1 reused from earlier versions (10 bytes)",
        "2,000 bytes before, 1,000 after",
    ]


def test_exported_files_are_counted_where_they_are_listed() -> None:
    file = ExportedFile(
        path="p0.csv",
        part=0,
        element=Element.NODE,
        type_id=0,
        weight_name="",
        format="csv",
        rows=1,
        bytes=2,
        sha256="",
    )
    listed = task_view(task(TaskResult(folder="/out", files=(file, file))))
    assert listed.result_lines == ["2 files in /out"]
    assert task_view(task(TaskResult(folder="/out"))).result_lines == ["files in /out"]


def test_a_page_of_a_job_has_the_tasks_of_the_endpoint() -> None:
    """The page omits the lists of a result only, and adds the addresses of hosts."""
    job = common_pb.Job(
        job_id=7, kind="build", state=common_pb.FINISHED, tasks=[task(TaskResult(units=(UNITS,)))]
    )
    details = presenters.job_details(job, {"uuid-0": metad_pb.Host(uuid="uuid-0", address="s:1")})
    (shown,), (served,) = details.tasks, job_view(job).tasks
    assert isinstance(shown, TaskView)
    assert shown.result is not None
    assert served.result is not None
    assert shown.result.units == []
    assert shown.model_copy(update={"result": served.result}) == served
    assert details.addresses == {"uuid-0": "s:1"}
