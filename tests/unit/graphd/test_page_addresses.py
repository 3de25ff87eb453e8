"""Tests of the addresses of pages, and of the descriptions of phases and partitions on them."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import cast

import httpx
import pytest
from fastapi import FastAPI

from asterism_proto.errors import NotFound, Unavailable
from asterism_proto.v1 import common_pb2 as common_pb
from asterism_proto.v1 import metad_pb2 as metad_pb
from graphd.pages import files, presenters
from graphd.pages.addresses import PageAddresses
from graphd.pages.catalog_reader import PageData


class FakeData:
    """Page data with job 3, and space `shop` with versions 4 and 5."""

    unavailable = False

    def job(self, job_id: int) -> common_pb.Job:
        self._check(job_id == 3)
        return common_pb.Job(job_id=job_id)

    def space(self, name: str) -> common_pb.Space:
        self._check(name == "shop")
        return common_pb.Space(name=name, version=5)

    def versions(self, name: str) -> list[common_pb.Manifest]:
        self._check(name == "shop")
        return [common_pb.Manifest(version=5), common_pb.Manifest(version=4)]

    def _check(self, exists: bool) -> None:
        if self.unavailable:
            raise Unavailable("metad is away")
        if not exists:
            raise NotFound("it does not exist")


def addresses(data: FakeData) -> PageAddresses:
    return PageAddresses(files.app_script(), cast(PageData, data))


@pytest.mark.parametrize(
    "path",
    [
        "/ui",
        "/ui/",
        "/ui/hosts",
        "/ui/query",
        "/ui/jobs/3",
        "/ui/spaces/shop/",
        "/ui/spaces/shop/versions/4",
        "/ui/spaces/shop/versions/0",
    ],
)
def test_addresses_of_existing_objects_have_a_page(path: str) -> None:
    assert addresses(FakeData()).exists(path)


@pytest.mark.parametrize(
    "path",
    [
        "/ui/nowhere",
        "/ui/jobs/4",
        "/ui/jobs/x",
        "/ui/jobs/٣",
        f"/ui/jobs/{'9' * 30}",
        "/ui/jobs/3/tasks",
        "/ui/spaces/none",
        "/ui/spaces//versions/4",
        "/ui/spaces/shop/versions/7",
        "/ui/spaces/shop/versions/-1",
    ],
)
def test_addresses_of_missing_objects_have_no_page(path: str) -> None:
    assert not addresses(FakeData()).exists(path)


def test_without_metad_every_well_formed_address_has_a_page() -> None:
    data = FakeData()
    data.unavailable = True
    assert addresses(data).exists("/ui/jobs/4")
    assert not addresses(data).exists("/ui/nowhere")


def test_partitions_without_an_online_host_are_counted() -> None:
    hosts = {
        "a": metad_pb.Host(uuid="a", online=True),
        "b": metad_pb.Host(uuid="b", online=False),
    }
    parts = [["a"], ["b"], ["b", "a"], ["unknown"], []]
    space = common_pb.Space(
        name="shop", parts=[common_pb.PartHosts(hosts=uuids) for uuids in parts]
    )
    assert presenters.space_row(space, None, hosts).unavailable_parts == 3


def test_a_page_that_a_server_does_not_have_has_no_address() -> None:
    page_data = cast(PageData, FakeData())
    assert addresses(FakeData()).exists("/ui/access")
    without = PageAddresses(files.app_script(), page_data, without=["/ui/access"])
    assert not without.exists("/ui/access")
    assert without.exists("/ui/hosts")


def test_only_pages_with_a_sign_in_ask_for_a_session() -> None:
    """Without access control, the page equals the file."""
    index = (resources.files("graphd.pages") / "static" / "index.html").read_bytes()
    for page, marked, status in (("", False, 404), ("/ui/sign-in", True, 200)):
        app = FastAPI()
        app.include_router(files.router(lambda path: path == "/ui/", sign_in_page=page))
        assert get(app, "/ui").content.count(b"data-sign-in") == marked
        assert (get(app, "/ui").content == index) == (not marked)
        assert get(app, "/ui/sign-in").status_code == status


def get(app: FastAPI, path: str) -> httpx.Response:
    """Return the reply of an application, without a socket."""

    async def request() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://graphd") as client:
            return await client.get(path)

    return asyncio.run(request())
