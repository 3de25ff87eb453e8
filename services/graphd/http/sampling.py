"""Sampling over HTTP: ``POST /api/v1/spaces/{space}/sample-neighbors`` and its relatives.

There is one route for each sampling method of the Graph service and for personalized PageRank, with
the same names, limits, prices, deadlines and errors. `OPERATIONS` lists them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Body, Path
from fastapi.responses import JSONResponse
from numpy.typing import NDArray

from asterism.graph import Client, Graph
from asterism_daemonkit.http.models import HttpModel, refusals
from asterism_daemonkit.rpc.call_context import CallContext, Handler, current_principal
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest
from graphd.http import sampling_requests as requests
from graphd.http import sampling_results as results
from graphd.query.transport import QueryTransport
from graphd.routing.routes import SpaceRoute


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A sampling method of the Graph service, as a route."""

    method: str
    """Name of the method, such as ``sample_nodes``; the route has dashes in it."""
    call: Callable[..., Any]
    """Call of the client that makes the request."""
    request: type[requests.SampleRequest]
    result: type[HttpModel]

    @property
    def path(self) -> str:
        """Path of the route."""
        return f"/api/v1/spaces/{{space}}/{self.method.replace('_', '-')}"


OPERATIONS = (
    Operation(
        method="sample_nodes",
        call=Graph.sample_nodes,
        request=requests.SampleNodesRequest,
        result=results.NodeSampleView,
    ),
    Operation(
        method="sample_nodes_like",
        call=Graph.sample_nodes_like,
        request=requests.SampleNodesLikeRequest,
        result=results.NodeRowsView,
    ),
    Operation(
        method="sample_negatives",
        call=Graph.sample_negatives,
        request=requests.SampleNegativesRequest,
        result=results.NodeRowsView,
    ),
    Operation(
        method="sample_edges",
        call=Graph.sample_edges,
        request=requests.SampleEdgesRequest,
        result=results.EdgeSampleView,
    ),
    Operation(
        method="sample_neighbors",
        call=Graph.sample_neighbors,
        request=requests.SampleNeighborsRequest,
        result=results.NeighborSampleView,
    ),
    Operation(
        method="sample_fanout",
        call=Graph.sample_fanout,
        request=requests.SampleFanoutRequest,
        result=results.FanoutSampleView,
    ),
    Operation(
        method="random_walk",
        call=Graph.random_walk,
        request=requests.RandomWalkRequest,
        result=results.WalkSampleView,
    ),
    Operation(
        method="sample_pinsage",
        call=Graph.sample_pinsage,
        request=requests.SamplePinsageRequest,
        result=results.VisitSampleView,
    ),
    Operation(
        method="personalized_pagerank",
        call=Graph.personalized_pagerank,
        request=requests.PersonalizedPagerankRequest,
        result=results.PageRanksView,
    ),
    Operation(
        method="sample_layer",
        call=Graph.sample_layer,
        request=requests.SampleLayerRequest,
        result=results.LayerSampleView,
    ),
    Operation(
        method="sample_layers",
        call=Graph.sample_fanout_layerwise,
        request=requests.SampleLayersRequest,
        result=results.LayerStackView,
    ),
    Operation(
        method="sample_subgraph",
        call=Graph.sample_subgraph,
        request=requests.SampleSubgraphRequest,
        result=results.SubgraphView,
    ),
    Operation(
        method="sample_ego_subgraphs",
        call=Graph.sample_ego_subgraphs,
        request=requests.SampleEgoSubgraphsRequest,
        result=results.SubgraphView,
    ),
    Operation(
        method="sample_labor",
        call=Graph.sample_labor,
        request=requests.SampleLaborRequest,
        result=results.SubgraphView,
    ),
    Operation(
        method="sample_hgt",
        call=Graph.sample_hgt,
        request=requests.SampleHgtRequest,
        result=results.SubgraphView,
    ),
    Operation(
        method="sample_graph_labels",
        call=Graph.sample_graph_labels,
        request=requests.SampleGraphLabelsRequest,
        result=results.GraphLabelsView,
    ),
)
"""Sampling methods, in the order of the documentation."""

_RESPONSES = refusals(
    {
        400: "The request cannot succeed as written; a fault in a filter has `line` and `column`.",
        404: "A space, type, weight, feature or version does not exist.",
        409: "Nothing has been published yet.",
        415: "The body is not `application/json`.",
        422: "A value is not of its type or out of its range.",
        429: "Too many calls are in progress, or memory is short.",
        503: "A storaged does not respond.",
        504: "The deadline has passed.",
    }
)

SpaceOf = Callable[[str, CallContext], SpaceRoute]
"""Function that returns a space by name, or raises NotFound."""


def sampling_router(handlers: Mapping[str, Handler], space_of: SpaceOf) -> APIRouter:
    """Return the router of all sampling calls.

    Parameters
    ----------
    handlers : mapping
        Handlers of the Graph service in this process, by method path.
    space_of : callable
        Returns a space by name, or raises NotFound.
    """
    api = APIRouter(tags=["sampling"])
    for operation in OPERATIONS:
        api.add_api_route(
            operation.path,
            _endpoint(operation, handlers, space_of),
            methods=["POST"],
            response_model=operation.result,
            responses=_RESPONSES,
        )
    return api


def _endpoint(
    operation: Operation, handlers: Mapping[str, Handler], space_of: SpaceOf
) -> Callable[..., JSONResponse]:
    """Return the function of a route; FastAPI reads its parameters and its description."""

    def sample(space: str, request: requests.SampleRequest) -> JSONResponse:
        arguments = dict(request)
        call = CallContext.with_timeout(arguments.pop("timeout_s"), current_principal())
        schema = space_of(space, call).schema
        client = Client(
            QueryTransport(handlers=handlers, parent_call=call), timeout_s=call.remaining()
        )
        client.session.store_schema(space, schema)
        graph = Graph(client.session, space, client)
        record = operation.call(graph, **call_arguments(arguments, request.NODE_IDS, schema))

        def names(ids: NDArray[np.int64], ntype: str | None) -> NDArray[Any]:
            return graph.node_names(ids, ntype, version=record.version)

        return JSONResponse(results.json_record(record, names if schema.has_string_ids else None))

    sample.__name__ = operation.method
    sample.__doc__ = (inspect.getdoc(operation.call) or "").partition("\n\nParameters\n")[0]
    sample.__annotations__ = {
        "space": Annotated[str, Path(description="Name of the space.", examples=["shop"])],
        "request": Annotated[operation.request, Body()],
    }
    return sample


def call_arguments(
    fields: Mapping[str, Any], node_ids: Sequence[str], schema: Schema
) -> dict[str, Any]:
    """Return the arguments of a client's call from the fields of a request.

    Parameters
    ----------
    fields : mapping
        Values by name.
    node_ids : sequence of str
        Names of the fields with ids of nodes.
    schema : Schema
        Schema of the space.

    Raises
    ------
    InvalidRequest
        If ids are neither integers nor names of this space.
    """
    arguments = dict(fields)
    if arguments.get("seed") is not None:
        arguments["seed"] = _seed(arguments["seed"])
    if "reverse_types" in arguments:
        arguments["exclude"] = _excluded_edges(arguments["exclude"], schema)
    for name in node_ids:
        if name != "exclude":
            arguments[name] = node_array(name, arguments[name], schema)
        elif arguments[name] is not None:
            arguments[name] = _ragged_ids(name, arguments[name], schema)
    return arguments


def _excluded_edges(exclude: Any, schema: Schema) -> Any:
    """Return excluded edges as columns: source, destination and, if present, edge id."""
    if isinstance(exclude, Mapping):
        return {etype: _excluded_edges(edges, schema) for etype, edges in exclude.items()}
    if not exclude:
        return exclude
    lengths = {len(edge) for edge in exclude}
    if len(lengths) > 1:
        raise InvalidRequest("exclude: expected edges that all have an edge id, or none that has")
    columns = list(zip(*exclude, strict=True))
    ends = tuple(_flat_array("exclude", column, schema) for column in columns[:2])
    return (
        *ends,
        *(
            np.array([_integer("exclude", row, eid) for row, eid in enumerate(column)], np.int64)
            for column in columns[2:]
        ),
    )


def node_array(argument: str, values: Sequence[Any], schema: Schema) -> NDArray[Any]:
    """Return ids or names of nodes as an array.

    Parameters
    ----------
    argument : str
        Name of the field, for messages.
    values : list of (int or str), or list of such lists
        Ids as integers or their digits as text; in a space of string ids, integers or names.
    schema : Schema
        Schema of the space.

    Returns
    -------
    ndarray of int64, or of object for names, shape (m,) or (m, k)

    Raises
    ------
    InvalidRequest
        If rows differ in length, names and integers are mixed, or a text is no integer.
    """
    if not any(isinstance(row, list) for row in values):
        return _flat_array(argument, values, schema)
    lengths = {len(row) if isinstance(row, list) else -1 for row in values}
    if len(lengths) > 1:
        raise InvalidRequest(f"{argument}: expected rows of the same length")
    flat = _flat_array(argument, [value for row in values for value in row], schema)
    return flat.reshape(len(values), lengths.pop())


def _flat_array(argument: str, values: Sequence[int | str], schema: Schema) -> NDArray[Any]:
    if not any(isinstance(value, str) for value in values):
        return np.array(values, np.int64)
    if not schema.has_string_ids:
        return np.array(
            [_integer(argument, position, value) for position, value in enumerate(values)], np.int64
        )
    for position, value in enumerate(values):
        if not isinstance(value, str):
            raise InvalidRequest(
                f"{argument}[{position}]={value}: expected a name; names and integer ids cannot "
                "be mixed"
            )
    names = np.empty(len(values), object)
    names[:] = values
    return names


def _ragged_ids(
    argument: str, rows: Sequence[Sequence[int | str]], schema: Schema
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return rows of ids as offsets and ids."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    flat = _flat_array(argument, [value for row in rows for value in row], schema)
    return indptr.astype(np.int64), flat


def _integer(argument: str, position: int, value: int | str) -> int:
    if isinstance(value, int):
        return value
    if not re.fullmatch(r"-1|[0-9]{1,19}", value) or int(value) >= 1 << 63:
        raise InvalidRequest(
            f"{argument}[{position}]={value!r}: expected an integer below 2^63, or its digits; "
            "only spaces with `ids: string` have names"
        )
    return int(value)


def _seed(value: int | str) -> int:
    if int(value) >= 1 << 64:
        raise InvalidRequest(f"seed={value}: expected an integer below 2^64")
    return int(value)
