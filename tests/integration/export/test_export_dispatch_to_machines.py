"""Sending partitions to their machines: addresses, machine files, and the resulting files."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.kit.flat_graph import generate

from asterism import export
from asterism.export.dgl_tensor_files import read_tensors
from asterism.export.dispatch_to_machines import part_addresses, read_hosts
from asterism_model.schema import Schema
from asterism_proto.errors import Conflict, Corrupt, InvalidRequest, NotFound

USERS = Schema.from_dict(
    {
        "parts": 2,
        "nodes": {"user": {"features": {"x": {"shape": [2]}}}},
        "edges": {"user:knows:user": {"weighted": True}},
    }
)


@pytest.fixture
def export_folder(tmp_path: Path) -> Path:
    export.dgl(
        generate(USERS, nodes={"user": 60}, edges={"user:knows:user": 300}, seed=2, space="users"),
        tmp_path / "out",
        parts=4,
    )
    return tmp_path / "out"


@pytest.fixture
def machines(tmp_path: Path) -> Path:
    (tmp_path / "ip_config.txt").write_text("10.0.0.1\n10.0.0.2 30050\n\n")
    return tmp_path / "ip_config.txt"


def file_digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_every_machine_gets_its_parts_and_the_configuration(
    tmp_path: Path, export_folder: Path, machines: Path
) -> None:
    report = export.dispatch(
        export_folder, f"file://{tmp_path}/at/{{host}}/data", ip_config=machines
    )
    assert [destination.parts for destination in report.places] == [(0, 2), (1, 3)]
    assert report.warnings == (
        "4 parts on 2 machines: DGL's launcher wants as many parts as machines",
    )
    all_files = file_digests(export_folder)
    for host, parts in (("10.0.0.1", (0, 2)), ("10.0.0.2", (1, 3))):
        machine_files = file_digests(tmp_path / "at" / host / "data")
        manifest = json.loads((tmp_path / "at" / host / "data/manifest.json").read_text())
        assert manifest["dispatched"] == list(parts)
        assert set(machine_files) == {
            "manifest.json",
            "users.json",
            *(name for name in all_files if name.startswith(tuple(f"part{p}/" for p in parts))),
        }
        assert all(
            machine_files[name] == all_files[name]
            for name in machine_files
            if name != "manifest.json"
        )
        assert set(manifest["files"]) == set(machine_files) - {"manifest.json"}


def test_each_part_can_go_to_its_own_address(tmp_path: Path, export_folder: Path) -> None:
    report = export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    assert [(destination.parts, destination.copied) for destination in report.places] == [
        ((part,), True) for part in range(4)
    ]
    for part in range(4):
        config = json.loads((tmp_path / f"at/{part}/users.json").read_text())
        path = tmp_path / f"at/{part}" / config[f"part-{part}"]["node_feats"]
        np.testing.assert_array_equal(
            read_tensors(path)["user/x"],
            read_tensors(export_folder / f"part{part}/node_feat.dgl")["user/x"],
        )


def test_repeated_dispatch_resumes_where_it_stopped(tmp_path: Path, export_folder: Path) -> None:
    export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    before = file_digests(tmp_path / "at")
    (tmp_path / "at/2/manifest.json").unlink()
    (tmp_path / "at/2/part2/graph.dgl").unlink()
    report = export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    assert [destination.copied for destination in report.places] == [False, False, True, False]
    assert file_digests(tmp_path / "at") == before


def test_another_export_is_replaced_only_on_request(tmp_path: Path, export_folder: Path) -> None:
    export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    other = tmp_path / "other"
    export.dgl(
        generate(USERS, nodes={"user": 60}, edges={"user:knows:user": 300}, seed=9, space="users"),
        other,
        parts=4,
    )
    with pytest.raises(Conflict, match="another export"):
        export.dispatch(other, f"{tmp_path}/at/{{part}}")
    export.dispatch(other, f"{tmp_path}/at/{{part}}", overwrite=True)
    assert (
        file_digests(tmp_path / "at/1")["part1/graph.dgl"] == file_digests(other)["part1/graph.dgl"]
    )


def test_export_can_go_directly_to_its_machines(
    tmp_path: Path, export_folder: Path, machines: Path
) -> None:
    flat = generate(
        USERS, nodes={"user": 60}, edges={"user:knows:user": 300}, seed=2, space="users"
    )
    (tmp_path / "scratch").mkdir()
    report = export.dgl(
        flat, f"{tmp_path}/at/{{host}}", parts=4, ip_config=machines, scratch=tmp_path / "scratch"
    )
    assert report.config == f"{tmp_path}/at/10.0.0.1/users.json"
    assert report.edges == 300
    for host, parts in (("10.0.0.1", (0, 2)), ("10.0.0.2", (1, 3))):
        machine_files, all_files = file_digests(tmp_path / "at" / host), file_digests(export_folder)
        assert {name.split("/")[0] for name in machine_files} == {
            "manifest.json",
            "users.json",
            *(f"part{part}" for part in parts),
        }
        assert all(
            machine_files[name] == all_files[name]
            for name in machine_files
            if name != "manifest.json"
        )
    assert list((tmp_path / "scratch").iterdir()) == []
    with pytest.raises(InvalidRequest, match="3 parts on 2 machines"):
        export.dgl(flat, f"{tmp_path}/again/{{host}}", parts=3, ip_config=machines)
    assert not (tmp_path / "again").exists()


def test_unsent_export_stays_in_scratch_and_can_resume(tmp_path: Path, export_folder: Path) -> None:
    flat = generate(
        USERS, nodes={"user": 60}, edges={"user:knows:user": 300}, seed=3, space="users"
    )
    export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    (scratch := tmp_path / "scratch").mkdir()
    options: dict[str, Any] = {"parts": 4, "scratch": scratch}
    with pytest.raises(Conflict, match="another export"):
        export.dgl(flat, f"{tmp_path}/at/{{part}}", **options, resume=True)
    (unsent,) = scratch.iterdir()
    assert (unsent / "manifest.json").is_file()
    phases: list[str] = []
    report = export.dgl(
        flat,
        f"{tmp_path}/at/{{part}}",
        **options,
        resume=True,
        overwrite=True,
        progress=lambda phase, done, total: phases.append(phase),
    )
    assert set(phases) == {"files"}  # nothing is exported again
    assert report.edges == 300
    assert list(scratch.iterdir()) == []
    with pytest.raises(Conflict, match="another export"):
        export.dgl(flat, f"{tmp_path}/at/{{part}}", **options, seed=5)
    assert list(scratch.iterdir()) == []


def test_dispatched_parts_verify_per_machine_and_together(
    tmp_path: Path, export_folder: Path, machines: Path
) -> None:
    export.dispatch(export_folder, f"{tmp_path}/at/{{host}}", ip_config=machines)
    for host, parts in (("10.0.0.1", (0, 2)), ("10.0.0.2", (1, 3))):
        single = export.verify(tmp_path / "at" / host)
        assert (single.problems, single.verified, single.parts) == ((), parts, 4)
    combined = export.verify(f"{tmp_path}/at/{{host}}", ip_config=machines)
    assert (combined.problems, combined.verified, combined.edges) == ((), (0, 1, 2, 3), 300)
    export.dispatch(export_folder, f"{tmp_path}/by/{{part}}")
    assert export.verify(f"{tmp_path}/by/{{part}}").verified == (0, 1, 2, 3)
    assert export.verify(tmp_path / "by/3").verified == (3,)
    with pytest.raises(InvalidRequest, match="a file of machines"):
        export.verify(f"{tmp_path}/at/{{host}}")
    with pytest.raises(InvalidRequest, match="a file of machines"):
        export.verify(tmp_path / "at/10.0.0.1", ip_config=machines)


def test_damage_is_reported_for_the_machine_that_has_it(
    tmp_path: Path, export_folder: Path, machines: Path
) -> None:
    export.dispatch(export_folder, f"{tmp_path}/at/{{host}}", ip_config=machines)
    folder = tmp_path / "at/10.0.0.2"
    content = (folder / "part3/node_feat.dgl").read_bytes()
    (folder / "part3/node_feat.dgl").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (folder / "part1/stray").write_bytes(b"?")
    for report in (
        export.verify(folder),
        export.verify(f"{tmp_path}/at/{{host}}", ip_config=machines),
    ):
        assert any(
            problem.startswith("part3/node_feat.dgl: ") and "sha256" in problem
            for problem in report.problems
        )
        assert "part1/stray: not a file of this export" in report.problems
    assert export.verify(tmp_path / "at/10.0.0.1").ok
    (folder / "manifest.json").unlink()
    with pytest.raises(NotFound, match=r"10\.0\.0\.2: no manifest"):
        export.verify(f"{tmp_path}/at/{{host}}", ip_config=machines)


def test_node_owned_by_two_machines_fails_joint_verification(
    tmp_path: Path, export_folder: Path
) -> None:
    export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    folder, other_ids = (
        tmp_path / "at/1",
        read_tensors(export_folder / "part0/orig_nids.dgl")["user"],
    )
    own_ids = read_tensors(folder / "part1/orig_nids.dgl")["user"].tobytes()
    path = folder / "part1/orig_nids.dgl"
    path.write_bytes(path.read_bytes().replace(own_ids, other_ids[:1].tobytes() + own_ids[8:]))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["part1/orig_nids.dgl"]["sha256"] = hashlib.sha256(
        path.read_bytes()
    ).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert export.verify(folder).ok
    assert any(
        "user: the ids, each once" in problem
        for problem in export.verify(f"{tmp_path}/at/{{part}}").problems
    )


def test_parts_of_two_exports_fail_joint_verification(tmp_path: Path, export_folder: Path) -> None:
    export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    other = tmp_path / "other"
    export.dgl(
        generate(USERS, nodes={"user": 60}, edges={"user:knows:user": 300}, seed=9, space="users"),
        other,
        parts=4,
    )
    export.dispatch(other, f"{tmp_path}/of/{{part}}")
    shutil.rmtree(tmp_path / "at/2")
    (tmp_path / "of/2").rename(tmp_path / "at/2")
    with pytest.raises(Corrupt, match="different exports"):
        export.verify(f"{tmp_path}/at/{{part}}")


def test_damaged_file_is_not_dispatched(tmp_path: Path, export_folder: Path) -> None:
    with (export_folder / "part1/graph.dgl").open("r+b") as file:
        file.seek(5000)
        file.write(b"\xff\xfe")
    with pytest.raises(Corrupt, match=r"part1/graph\.dgl"):
        export.dispatch(export_folder, f"{tmp_path}/at/{{part}}")
    assert not (tmp_path / "at/1/part1/graph.dgl").exists()
    assert not (tmp_path / "at/1/manifest.json").exists()


def test_a_folder_that_is_no_export_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="finished export"):
        export.dispatch(tmp_path, f"{tmp_path}/at/{{part}}")


@pytest.mark.parametrize(
    ("template", "hosts", "words"),
    [
        ("s3://bucket/shop", (), "expected {part} or {host}"),
        ("s3://bucket/{rank}", (), "nothing else in braces"),
        ("s3://bucket/{part:03d}", (), "nothing else in braces"),
        ("s3://bucket/{part", (), "expected {part} and {host}"),
        ("sftp://{host}/x", (), "a file of machines"),
        ("s3://bucket/{part}", ("a",), "expected {host}"),
        ("sftp://{host}/x", ("a", "b", "c"), "4 parts on 3 machines"),
    ],
)
def test_invalid_address_template_is_refused(
    template: str, hosts: tuple[str, ...], words: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        part_addresses(template, 4, hosts)
    assert words in str(refused.value)


def test_parts_go_to_machines_round_robin() -> None:
    assert part_addresses("sftp://{host}/p{part}", 4, ("a", "b")) == [
        "sftp://a/p0",
        "sftp://b/p1",
        "sftp://a/p2",
        "sftp://b/p3",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected one machine on each line"),
        ("a b\n", "line 1"),
        ("a\nb 1 2\n", "line 2"),
        ("a\na\n", "twice"),
        ("a/b\n", "line 1"),
    ],
)
def test_invalid_machine_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "ip_config.txt").write_text(text)
    with pytest.raises(InvalidRequest, match=words):
        read_hosts(tmp_path / "ip_config.txt")


def test_missing_machine_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"ip_config\.txt"):
        read_hosts(tmp_path / "ip_config.txt")
