"""The client on an event loop, for type checkers. Written by `make stubs`."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.aio.async_wrapper import AsyncWrapper
from asterism.backup import BackupInfo
from asterism.calls import validation
from asterism.calls.base import Names
from asterism.calls.clusters import ClusterBatch, ClusterInput
from asterism.calls.epoch_cursor import EpochCursor
from asterism.calls.epoch_iterators import Batch, ClusterEpochs, EdgeEpochs, NodeEpochs, PairEpochs
from asterism.calls.epochs import UNSET
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.explain import ExplainCalls
from asterism.calls.fanout_sampling import FeatureSelection
from asterism.calls.loads import Load
from asterism.calls.metapath_notation import Metapath
from asterism.calls.pins import DEFAULT_TERM_S, PinnedVersion
from asterism.calls.string_id_hashing import NodeTypes
from asterism.calls.write_encoding import NO_FEATURES, WriteRows
from asterism.graph import Client, Graph
from asterism.objects import LoadedGraph
from asterism.records.access import EVERY, AccessLimits, ApiKey, RoleGrant
from asterism.records.catalog import Host, Job, SpaceInfo
from asterism.records.explanation import Explanation
from asterism.records.query_result import QueryResult
from asterism.records.samples import (
    Adjacency,
    EdgeBatch,
    EdgeRows,
    EdgeSample,
    FanoutSample,
    Features,
    FeatureValue,
    GraphLabels,
    GraphNodes,
    Ids,
    LayerSample,
    LayerStack,
    LinkSeeds,
    MultiHopNeighbors,
    NeighborSample,
    NodeBatch,
    NodeRows,
    NodeSample,
    PageRanks,
    PairBatch,
    RaggedNeighbors,
    Subgraph,
    TopNeighbors,
    Types,
    VisitSample,
    WalkSample,
)
from asterism.records.versions import PinInfo, VersionInfo
from asterism.transport.retry_budget import Traffic
from asterism.verification import VerificationReport
from asterism_model.schema import Schema
from asterism_proto.v1 import metad_pb2 as metad_pb

Inner = TypeVar("Inner")

class ClosingWrapper(AsyncWrapper[Inner], Generic[Inner]):
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    async def close(self) -> None: ...

class AsyncClient(ClosingWrapper[Client]):
    async def access_limits(
        self, principal: str | None = None, space: str | None = None
    ) -> list[AccessLimits]: ...
    async def api_keys(self, principal: str | None = None) -> list[ApiKey]: ...
    async def backup(
        self,
        space: str,
        address: str | Path,
        *,
        version: int | None = None,
        timeout_s: float = 24 * 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> BackupInfo: ...
    async def begin_load(
        self, space: str, *, source: str = "", resume_key: str = ""
    ) -> AsyncLoad: ...
    async def close(self) -> None: ...
    async def create_api_key(
        self, principal: str, *, expires_s: float | None = None, description: str = ""
    ) -> ApiKey: ...
    async def create_space(
        self, name: str, schema: Schema | Mapping[str, Any], *, if_not_exists: bool = False
    ) -> SpaceInfo: ...
    async def describe(self, name: str) -> SpaceInfo: ...
    async def drop_space(self, name: str, *, if_exists: bool = False) -> None: ...
    async def grant(self, principal: str, space: str, role: str) -> RoleGrant: ...
    async def grants(
        self, principal: str | None = None, space: str | None = None
    ) -> list[RoleGrant]: ...
    async def graph(self, name: str) -> AsyncGraph: ...
    async def hosts(self) -> list[Host]: ...
    async def job(self, job_id: int) -> Job: ...
    async def jobs(
        self, space: str | None = None, states: Iterable[str] = (), limit: int = 50, before: int = 0
    ) -> list[Job]: ...
    async def load_graph(
        self,
        space: str,
        graph: Any,
        *,
        nodes: Any = None,
        ends: tuple[str, str] = ("src", "dst"),
        weights: str | Mapping[str, str] | None = None,
        rename: Mapping[str, str] | None = None,
        types: Mapping[str | tuple[str, str, str], str] | None = None,
        only: Iterable[str] | None = None,
        fill: Mapping[str, Any] | None = None,
        time_unit: str = "us",
        node_type: str = "node",
        relation: str = "edge",
        parts: int = 8,
        direction: str = "both",
        ids: str = "per_type",
        salt: int = 0,
        build: bool = False,
    ) -> LoadedGraph: ...
    async def manifest(self, space: str, version: int = 0) -> VersionInfo: ...
    async def pins(self, space: str | None = None) -> list[PinInfo]: ...
    async def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        space: str | None = None,
        language: str = "ngql",
    ) -> QueryResult: ...
    async def recover_job(self, job_id: int) -> Job: ...
    async def restore(
        self,
        address: str | Path,
        name: str | None = None,
        *,
        timeout_s: float = 24 * 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> SpaceInfo: ...
    async def revoke(self, principal: str, space: str) -> str: ...
    async def revoke_api_key(self, key_id: str) -> ApiKey: ...
    async def set_access_limits(
        self,
        principal: str,
        space: str = EVERY,
        *,
        calls_per_s: float = 0.0,
        rows_per_s: float = 0.0,
        bytes_per_s: float = 0.0,
        concurrent_calls: int = 0,
        stored_bytes: int = 0,
        pins: int = 0,
        jobs: int = 0,
        share: float = 0.0,
    ) -> AccessLimits: ...
    async def spaces(self) -> list[SpaceInfo]: ...
    async def stop_job(self, job_id: int) -> Job: ...
    async def submit_job(
        self,
        space: str,
        kind: str = "build",
        *,
        options: Mapping[str, str] | None = None,
        version: int = 0,
    ) -> Job: ...
    @property
    def traffic(self) -> Traffic: ...
    async def verify(
        self,
        space: str,
        *,
        weights: str | Sequence[str] | None = None,
        draws: int = 100000,
        alpha: float = 0.001,
        power: float = 0.9,
        buckets: int = 64,
        seed: int | None = None,
        version: int | None = None,
        timeout_s: float = 3600.0,
        on_progress: Callable[[str, int, int | None], None] | None = None,
    ) -> VerificationReport: ...
    async def versions(self, space: str) -> list[VersionInfo]: ...
    async def wait(
        self,
        job_id: int,
        *,
        timeout_s: float = 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> Job: ...

class AsyncGraph(ClosingWrapper[Graph]):
    @property
    def space(self) -> str: ...
    @property
    def version(self) -> int | None: ...
    @property
    def client(self) -> AsyncClient: ...
    async def adjacency(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        etypes: Names = None,
        *,
        row_type: NodeTypes = None,
        col_type: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        weights: bool = True,
        edge_ids: bool = False,
        version: int | None = None,
    ) -> Adjacency: ...
    def at(self, version: int) -> AsyncGraph: ...
    async def build(self, wait: bool = True, *, timeout_s: float = 3600.0) -> Job: ...
    async def close(self) -> None: ...
    async def cluster_batches(
        self,
        clusters: ClusterInput,
        q: int,
        etypes: Names = None,
        *,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> AsyncClusterEpochs: ...
    async def count_edges(
        self, etype: str, *, where: str = "", version: int | None = None
    ) -> int: ...
    async def count_nodes(self, ntype: str, *, version: int | None = None) -> int: ...
    @overload
    async def degrees(
        self,
        nodes: ArrayLike,
        etypes: Names = ...,
        *,
        ntype: NodeTypes = ...,
        direction: str = ...,
        weight: None = ...,
        where: str = ...,
        exclude: EdgeExclusion = ...,
        reverse_types: ReverseTypes = ...,
        version: int | None = ...,
    ) -> Ids: ...
    @overload
    async def degrees(
        self,
        nodes: ArrayLike,
        etypes: Names = ...,
        *,
        ntype: NodeTypes = ...,
        direction: str = ...,
        weight: str,
        where: str = ...,
        exclude: EdgeExclusion = ...,
        reverse_types: ReverseTypes = ...,
        version: int | None = ...,
    ) -> NDArray[np.float64]: ...
    async def delete_edges(
        self, src: ArrayLike, dst: ArrayLike, etype: str, edge_ids: ArrayLike | None = None
    ) -> int: ...
    async def delete_nodes(self, ids: ArrayLike, ntype: str) -> int: ...
    async def edge_batches(
        self,
        etype: str,
        batch_size: int,
        *,
        weight: str = "",
        where: str = "",
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> AsyncEdgeEpochs: ...
    async def edge_features(
        self,
        edge_ids: ArrayLike,
        names: str | Iterable[str],
        etype: str,
        *,
        strict: bool = False,
        version: int | None = None,
    ) -> dict[str, FeatureValue]: ...
    async def edges_at(
        self,
        etype: str,
        places: ArrayLike,
        *,
        weight: str = "",
        where: str = "",
        version: int | None = None,
    ) -> EdgeRows: ...
    @property
    def explain(self) -> AsyncExplainCalls: ...
    async def find_nodes(self, ids: ArrayLike, ntype: str) -> NDArray[np.bool_]: ...
    async def graph_nodes(
        self, labels: Iterable[bytes | str], *, version: int | None = None
    ) -> GraphNodes: ...
    async def induced_subgraph(
        self,
        nodes: ArrayLike,
        etypes: Names = None,
        *,
        indptr: ArrayLike | None = None,
        ntype: NodeTypes = None,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        version: int | None = None,
    ) -> Subgraph: ...
    async def link_seeds(
        self,
        edges: EdgeRows | EdgeSample | ArrayLike,
        etype: str,
        *,
        mode: str = "binary",
        amount: float = 1,
        weight: str | None = None,
        src_weight: str | None = None,
        exclude: bool = True,
        seed: int | None = None,
        version: int | None = None,
    ) -> LinkSeeds: ...
    async def manifest(self, version: int | None = None) -> VersionInfo: ...
    def metapaths(self, text: str) -> tuple[Metapath, ...]: ...
    async def multi_hop_neighbors(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        edge_ids: bool = False,
        version: int | None = None,
    ) -> MultiHopNeighbors: ...
    async def neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        sort: str | None = None,
        weights: bool = True,
        edge_ids: bool = True,
        version: int | None = None,
    ) -> RaggedNeighbors: ...
    async def node_batches(
        self,
        ntype: str,
        batch_size: int,
        *,
        among: ArrayLike | None = None,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> AsyncNodeEpochs: ...
    async def node_features(
        self,
        nodes: ArrayLike,
        names: str | Iterable[str],
        ntype: str | None = None,
        *,
        strict: bool = False,
        version: int | None = None,
    ) -> dict[str, FeatureValue]: ...
    async def node_ids(
        self,
        names: ArrayLike,
        ntype: NodeTypes = None,
        *,
        missing: str = "fail",
        version: int | None = None,
    ) -> Ids: ...
    async def node_names(
        self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> NDArray[np.str_]: ...
    async def node_types(
        self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None
    ) -> Types: ...
    async def nodes_at(
        self, ntype: str, places: ArrayLike, *, version: int | None = None
    ) -> Ids: ...
    async def personalized_pagerank(
        self,
        nodes: ArrayLike,
        etypes: Names,
        k: int,
        *,
        alpha: float = 0.15,
        epsilon: float = 0.0001,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        version: int | None = None,
    ) -> PageRanks: ...
    def pin(
        self,
        version: int | None = None,
        *,
        term_s: float = DEFAULT_TERM_S,
        owner: str | None = None,
    ) -> AsyncPinned: ...
    async def query(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, language: str = "ngql"
    ) -> QueryResult: ...
    async def random_walk(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names] | None = None,
        length: int | None = None,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        p: float = 1.0,
        q: float = 1.0,
        restart: float = 0.0,
        direction: str = "out",
        walks: int | None = None,
        first_step: str = "independent",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> WalkSample: ...
    async def replay(
        self,
        token: str,
        nodes: ArrayLike | None = None,
        ntype: ArrayLike | None = None,
        *,
        exclude: validation.Exclusions | EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        times: ArrayLike | None = None,
    ) -> Any: ...
    async def sample_edges(
        self,
        n: int,
        etype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> EdgeSample: ...
    async def sample_ego_subgraphs(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        among: Names = None,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = False,
        direction: str = "out",
        disjoint: bool = True,
        expand: str = "first",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph: ...
    async def sample_fanout(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        fanouts: Sequence[float],
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = True,
        edge_ids: bool = False,
        probabilities: bool = False,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> FanoutSample: ...
    async def sample_fanout_layerwise(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        counts: Sequence[int],
        *,
        measure: str = "sum",
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerStack: ...
    async def sample_graph_labels(
        self, n: int, *, seed: int | None = None, version: int | None = None
    ) -> GraphLabels: ...
    async def sample_hgt(
        self,
        seeds: ArrayLike,
        counts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        among: Names = None,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph: ...
    async def sample_labor(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        importance: int = 0,
        layer_dependency: bool = False,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        expand: str = "every",
        weights: bool = True,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph: ...
    async def sample_layer(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: int,
        *,
        measure: str = "sum",
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerSample: ...
    async def sample_negatives(
        self,
        pairs: ArrayLike,
        n: int,
        ntype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        shared: bool = False,
        exclude: validation.Exclusions = None,
        exclude_edges: Names = None,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows: ...
    async def sample_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: float,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = True,
        edge_ids: bool = False,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NeighborSample: ...
    async def sample_nodes(
        self,
        n: int,
        ntype: Names = None,
        *,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeSample: ...
    async def sample_nodes_like(
        self,
        src: ArrayLike,
        n: int,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        unknown: str = "error",
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows: ...
    async def sample_pinsage(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names] | None,
        n: int,
        *,
        walks: int,
        traversals: int = 2,
        termination: float = 0.5,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        seed: int | None = None,
        version: int | None = None,
    ) -> VisitSample: ...
    async def sample_subgraph(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = False,
        direction: str = "out",
        disjoint: bool = False,
        expand: str = "first",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph: ...
    def scan_edges(
        self,
        etype: str,
        names: str | Iterable[str] = (),
        *,
        weight: str = "",
        version: int | None = None,
        rows: int = 65536,
        parts: Iterable[int] | None = None,
        after: Sequence[int] | None = None,
    ) -> AsyncIterator[EdgeBatch]: ...
    def scan_nodes(
        self,
        ntype: str,
        names: str | Iterable[str] = (),
        *,
        weight: str = "",
        version: int | None = None,
        rows: int = 65536,
        parts: Iterable[int] | None = None,
        after: Sequence[int] | None = None,
    ) -> AsyncIterator[NodeBatch]: ...
    @property
    def schema(self) -> Schema: ...
    async def top_k_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        k: int,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        edge_ids: bool = False,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        version: int | None = None,
    ) -> TopNeighbors: ...
    async def upsert_edges(
        self,
        src: ArrayLike,
        dst: ArrayLike,
        etype: str,
        weights: ArrayLike | None = None,
        features: Features | None = None,
    ) -> int: ...
    async def upsert_nodes(
        self,
        ids: ArrayLike,
        ntype: str,
        weights: ArrayLike | None = None,
        features: Features | None = None,
    ) -> int: ...
    async def walk_pairs(
        self,
        metapaths: str | Sequence[Metapath],
        walk_length: int,
        *,
        walks: int = 1,
        window: int = 1,
        batch_size: int = 1024,
        first_step: str = "distinct",
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        negatives: int = 0,
        excluded: str = "",
        starts: Mapping[str, ArrayLike] = UNSET,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> AsyncPairEpochs: ...
    async def without_edges(
        self,
        exclude: EdgeExclusion,
        *,
        reverse_types: ReverseTypes = None,
        version: int | None = None,
    ) -> AsyncGraph: ...

class AsyncLoad(AsyncWrapper[Load]):
    @property
    def load_id(self) -> int: ...
    @property
    def space(self) -> str: ...
    @property
    def written(self) -> set[int]: ...
    async def abandon(self) -> None: ...
    async def commit(self, rejected: int = 0) -> int: ...
    @property
    def commit_number(self) -> int: ...
    async def delete_edges(
        self, index: int, etype: str, src: ArrayLike, dst: ArrayLike, eids: ArrayLike | None = None
    ) -> int: ...
    async def delete_nodes(self, index: int, ntype: str, ids: ArrayLike) -> int: ...
    async def find_nodes(self, ntype: str, ids: ArrayLike) -> NDArray[np.bool_]: ...
    @property
    def registered(self) -> frozenset[int]: ...
    async def write_edges(
        self,
        index: int,
        etype: str,
        src: ArrayLike,
        dst: ArrayLike,
        weights: ArrayLike | None = None,
        features: Mapping[str, Any] = NO_FEATURES,
        *,
        ends_known: bool = False,
    ) -> int: ...
    async def write_nodes(
        self,
        index: int,
        ntype: str,
        ids: ArrayLike,
        weights: ArrayLike | None = None,
        features: Mapping[str, Any] = NO_FEATURES,
    ) -> int: ...
    async def write_rows(
        self, index: int, rows: WriteRows, *, ends_known: bool = False
    ) -> metad_pb.Chunk: ...

class AsyncNodeEpochs(AsyncWrapper[NodeEpochs]):
    @property
    def version(self) -> int: ...
    @property
    def ntype(self) -> str: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def cursor(self) -> EpochCursor: ...
    def __aiter__(self) -> AsyncIterator[Ids]: ...
    @property
    def epoch(self) -> int: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    async def next_batch(self) -> Batch: ...
    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...

class AsyncEdgeEpochs(AsyncWrapper[EdgeEpochs]):
    @property
    def version(self) -> int: ...
    @property
    def etype(self) -> str: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def cursor(self) -> EpochCursor: ...
    def __aiter__(self) -> AsyncIterator[EdgeRows]: ...
    @property
    def epoch(self) -> int: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    async def next_batch(self) -> Batch: ...
    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...

class AsyncClusterEpochs(AsyncWrapper[ClusterEpochs]):
    @property
    def version(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def cursor(self) -> EpochCursor: ...
    def __aiter__(self) -> AsyncIterator[ClusterBatch]: ...
    @property
    def epoch(self) -> int: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    async def next_batch(self) -> Batch: ...
    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...

class AsyncPairEpochs(AsyncWrapper[PairEpochs]):
    @property
    def seed(self) -> int: ...
    @property
    def version(self) -> int | None: ...
    def __aiter__(self) -> AsyncIterator[PairBatch]: ...
    @property
    def epoch(self) -> int: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...

class AsyncPinned(AsyncWrapper[PinnedVersion[Graph]]):
    async def __aenter__(self) -> AsyncGraph: ...
    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

class AsyncExplainCalls(AsyncWrapper[ExplainCalls]):
    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Explanation]]: ...
