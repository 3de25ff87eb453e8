"""Exports to addresses: a local folder and an object store.

An export is complete or absent. It can be resumed and read from its address.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.export.test_export_resumed import failing_graph, graph, manifest
from tests.kit.objects import ObjectStore

from asterism import export
from asterism_proto.errors import Conflict, NotFound, Unavailable


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with ObjectStore(tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture
def address(store: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a new folder in the store, with credentials set in this process."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    yield f"{store.address}/{tmp_path.name}"
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def object_digests(store: ObjectStore, address: str) -> dict[str, str]:
    """Return the digest of every object below an address."""
    prefix = address.removeprefix(f"{store.address}/") + "/"
    return {
        key.removeprefix(prefix): hashlib.sha256(store.get(key)).hexdigest()
        for key in store.keys(prefix)
    }


def digests(content: dict[str, Any]) -> dict[str, str]:
    return {path: facts["sha256"] for path, facts in content["files"].items()}


def test_an_address_of_a_folder_is_that_folder(tmp_path: Path) -> None:
    report = export.dgl(graph(), f"file://{tmp_path}/out", parts=2)
    assert (tmp_path / "out/manifest.json").exists()
    assert report.config == tmp_path / "out/flat.json"
    assert export.verify(f"file://{tmp_path}/out").ok
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


def test_object_store_gets_the_same_files_as_a_folder(
    tmp_path: Path, store: ObjectStore, address: str
) -> None:
    export.dgl(graph(), tmp_path / "here", parts=3)
    report = export.dgl(graph(), address, parts=3, scratch=tmp_path / "scratch")
    expected = digests(manifest(tmp_path / "here"))
    stored = object_digests(store, address)
    stored_manifest = json.loads(store.get(f"{tmp_path.name}/manifest.json"))
    assert stored_manifest == manifest(tmp_path / "here")
    assert {path: digest for path, digest in stored.items() if path != "manifest.json"} == expected
    assert report.config == f"{address}/flat.json"
    assert list((tmp_path / "scratch").iterdir()) == []
    assert export.verify(address).ok


def test_processes_write_to_an_object_store_too(
    tmp_path: Path, store: ObjectStore, address: str
) -> None:
    export.dgl(graph(), address, parts=3, workers=2, scratch=tmp_path / "scratch")
    assert export.verify(address).ok


def test_interrupted_object_store_export_can_resume(
    tmp_path: Path, store: ObjectStore, address: str
) -> None:
    with pytest.raises(Unavailable):
        export.dgl(
            failing_graph(graph(), "user:knows:user"),
            address,
            parts=3,
            resume=True,
            scratch=tmp_path / "scratch",
        )
    assert "part0/orig_nids.dgl" in object_digests(store, address)
    with pytest.raises(NotFound, match=r"no manifest\.json"):
        export.verify(address)
    written = store.modified_at(f"{tmp_path.name}/part0/orig_nids.dgl")
    export.dgl(graph(), address, parts=3, resume=True, scratch=tmp_path / "scratch")
    assert store.modified_at(f"{tmp_path.name}/part0/orig_nids.dgl") == written
    export.dgl(graph(), tmp_path / "whole", parts=3)
    assert json.loads(store.get(f"{tmp_path.name}/manifest.json")) == manifest(tmp_path / "whole")


def test_export_at_an_address_is_replaced_only_on_request(
    tmp_path: Path, store: ObjectStore, address: str
) -> None:
    export.dgl(graph(), address, parts=3, scratch=tmp_path / "scratch")
    with pytest.raises(Conflict, match="overwrite"):
        export.dgl(graph(), address, parts=2, scratch=tmp_path / "scratch")
    export.dgl(graph(), address, parts=2, overwrite=True, scratch=tmp_path / "scratch")
    stored_manifest = json.loads(store.get(f"{tmp_path.name}/manifest.json"))
    assert set(object_digests(store, address)) == {*stored_manifest["files"], "manifest.json"}
    assert export.verify(address).parts == 2


def test_a_damaged_object_is_found(tmp_path: Path, store: ObjectStore, address: str) -> None:
    export.dgl(graph(), address, parts=2, scratch=tmp_path / "scratch")
    key = f"{tmp_path.name}/part1/node_feat.dgl"
    content = store.get(key)
    store.put(key, content[:-1] + bytes([content[-1] ^ 1]))
    report = export.verify(address)
    assert any("part1/node_feat.dgl" in problem for problem in report.problems)
    store.delete(key)
    assert any(
        "part1/node_feat.dgl: missing" in problem for problem in export.verify(address).problems
    )


def test_machines_have_folders_of_their_own_in_an_object_store(
    tmp_path: Path, store: ObjectStore, address: str
) -> None:
    (tmp_path / "ip_config.txt").write_text("10.0.0.1 30050\n10.0.0.2\n")
    template, machines = f"{address}/{{host}}/shop", tmp_path / "ip_config.txt"
    report = export.dgl(
        graph(), template, parts=4, ip_config=machines, scratch=tmp_path / "scratch"
    )
    assert report.config == f"{address}/10.0.0.1/shop/flat.json"
    export.dgl(graph(), tmp_path / "here", parts=4)
    expected = digests(manifest(tmp_path / "here"))
    for host, parts in (("10.0.0.1", (0, 2)), ("10.0.0.2", (1, 3))):
        stored = object_digests(store, f"{address}/{host}/shop")
        assert set(stored) == {
            "manifest.json",
            "flat.json",
            *(path for path in expected if path.startswith(tuple(f"part{p}/" for p in parts))),
        }
        assert all(stored[path] == expected[path] for path in stored if path != "manifest.json")
        assert export.verify(f"{address}/{host}/shop").verified == parts
    assert export.verify(template, ip_config=machines).verified == (0, 1, 2, 3)
    repeated = export.dispatch(tmp_path / "here", template, ip_config=machines)
    assert [destination.copied for destination in repeated.places] == [False, False]
    store.delete(f"{tmp_path.name}/10.0.0.2/shop/part1/graph.dgl")
    assert "part1/graph.dgl: missing" in " ".join(
        export.verify(template, ip_config=machines).problems
    )


def test_missing_bucket_is_named_in_the_error(
    tmp_path: Path, store: ObjectStore, address: str
) -> None:
    export.dgl(graph(), tmp_path / "here", parts=2)
    with pytest.raises((NotFound, Unavailable), match="no-such-bucket"):
        export.dispatch(tmp_path / "here", "s3://no-such-bucket/{part}")
