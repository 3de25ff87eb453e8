"""Routes under ``/api/v1``: each reads from `metad.catalog_service`, or calls a handler of metad.

Changes go through the handlers, which check roles and limits and record what is done. The routes of
jobs are in `asterism_daemonkit.http.job_routes`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from asterism_access.guard import AccessGuard
from asterism_access.principals import LOCAL
from asterism_access.roles import Role
from asterism_daemonkit.http.job_routes import TIMEOUT_S, parse_id
from asterism_daemonkit.http.models import refusals
from asterism_daemonkit.http.weight_stats_views import WeightStatsView, weight_stats_views
from asterism_daemonkit.rpc.call_context import current_principal
from asterism_model.schema import Schema
from asterism_proto.methods import CATALOG
from asterism_proto.transport import Transport
from asterism_proto.v1 import metad_pb2 as metad_pb
from metad.catalog_service import CatalogService
from metad.http.views import (
    HostView,
    NewSpace,
    SpaceView,
    VersionView,
    host_view,
    space_view,
    version_view,
)

SpaceName = Annotated[str, Path(description="The space's name.", examples=["papers"])]
VersionNumber = Annotated[str, Path(description="The version's number.", examples=["3"])]
_NOT_FOUND = {
    404: "A space or version does not exist.",
    422: "A value is not of its type or out of its range.",
}
_REFUSED = {
    400: "The request cannot succeed as written.",
    409: "The request conflicts with what exists, or is too early.",
}


def router(
    service: CatalogService, catalog: Transport, guard: AccessGuard | None = None
) -> APIRouter:
    """Return the routes of spaces, versions and hosts.

    Parameters
    ----------
    service : CatalogService
    catalog : Transport
        Carries calls of the Catalog service with the rights of the caller of a route.
    guard : AccessGuard, optional
        Checks the roles of the caller of a route. Default: every caller may do everything.
    """
    api = APIRouter(prefix="/api/v1", responses=refusals(_NOT_FOUND))
    api.include_router(_space_routes(service, catalog, guard))

    @api.get("/hosts", tags=["hosts"])
    def list_hosts() -> list[HostView]:
        """Return every daemon that sends heartbeats, storageds first."""
        return [host_view(host, parts) for host, parts in service.hosts()]

    return api


def _space_routes(
    service: CatalogService, catalog: Transport, guard: AccessGuard | None
) -> APIRouter:
    api = APIRouter(tags=["spaces"])

    def require(space: str, role: Role = Role.READER) -> None:
        if guard is not None:
            guard.require(current_principal(), space, role)

    @api.get("/spaces")
    def list_spaces() -> list[SpaceView]:
        """Return all spaces, by id."""
        caller = current_principal() if guard is not None else LOCAL
        return [
            space_view(space, manifest)
            for space, manifest in service.describe_spaces()
            if caller.has_role(space.name, Role.READER)
        ]

    @api.get("/spaces/{name}")
    def get_space(name: SpaceName) -> SpaceView:
        """Return one space: schema, partitions, current version and its totals."""
        require(name)
        return space_view(*service.describe_spaces(name)[0])

    @api.post("/spaces", status_code=201, responses=refusals(_REFUSED))
    def create_space(new: NewSpace) -> SpaceView:
        """Create a space; its partitions are assigned to the storageds that are online."""
        if guard is not None:
            guard.require_cluster_admin(current_principal(), "POST /spaces")
        request = metad_pb.CreateSpaceRequest(
            name=new.name,
            schema=Schema.from_dict(new.schema_).to_proto(),
            if_not_exists=new.if_not_exists,
        )
        catalog.call(CATALOG["create_space"], request, TIMEOUT_S)
        return space_view(*service.describe_spaces(new.name)[0])

    @api.delete("/spaces/{name}", status_code=204)
    def drop_space(
        name: SpaceName,
        if_exists: Annotated[
            bool, Query(description="Whether it is fine that there is no such space.")
        ] = False,
    ) -> None:
        """Delete a space with everything in it: loads, versions, data. Its jobs are stopped."""
        request = metad_pb.DropSpaceRequest(space=name, if_exists=if_exists)
        catalog.call(CATALOG["drop_space"], request, TIMEOUT_S)

    @api.get("/spaces/{name}/versions")
    def list_versions(name: SpaceName) -> list[VersionView]:
        """Return the served versions of a space, newest first, with their pins."""
        require(name)
        space = service.space(name)
        pins = service.pins(name)
        return [version_view(space, manifest, pins) for manifest in service.versions(name)]

    @api.get("/spaces/{name}/versions/{version}")
    def get_version(name: SpaceName, version: VersionNumber) -> VersionView:
        """Return one version."""
        require(name)
        space = service.space(name)
        return version_view(
            space,
            service.manifest(name, parse_id("version", version, minimum=1)),
            service.pins(name),
        )

    @api.get("/spaces/{name}/versions/{version}/hygiene", deprecated=True)
    @api.get("/spaces/{name}/versions/{version}/weight-stats")
    def get_weight_stats(name: SpaceName, version: VersionNumber) -> list[WeightStatsView]:
        """Return weight statistics of a version, by type and weight name.

        They cover invalid values, effective sample size, largest share and error bound."""
        require(name)
        manifest = service.manifest(name, parse_id("version", version, minimum=1))
        return weight_stats_views(service.space(name).schema, manifest.totals)

    return api
