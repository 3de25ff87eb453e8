"""The client's classes on an event loop, as type checkers see them. Written by `make stubs`; not by hand."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism import arguments
from asterism.accounts import Explanation
from asterism.aio.facing import Face
from asterism.backup import BackupInfo
from asterism.budgets import Traffic
from asterism.catalog import Host, Job, SpaceInfo
from asterism.client import Client
from asterism.clusters import ClusterBatch, Given
from asterism.epochs import EpochCursor
from asterism.explain import Explainer
from asterism.fanouts import Columns
from asterism.graph import Graph
from asterism.loading import Load
from asterism.metapaths import Metapath
from asterism.names import NodeTypes
from asterism.objects import LoadedGraph
from asterism.passes import NOT_SAID, PairPasses
from asterism.pins import TERM_S, Pinned
from asterism.querying import Result
from asterism.records import (
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
    MultiHop,
    NeighborSample,
    NodeBatch,
    NodeRows,
    NodeSample,
    PageRanks,
    PairBatch,
    Ragged,
    Subgraph,
    TopNeighbors,
    Types,
    VisitSample,
    WalkSample,
)
from asterism.sampling import Names
from asterism.verification import Report
from asterism.versions import PinInfo, VersionInfo
from asterism.visits import Batch, ClusterPasses, EdgePasses, NodePasses
from asterism.written import NO_FEATURES, Rows
from asterism_proto.schema import Schema
from asterism_proto.v1 import metad_pb2 as meta

Inner = TypeVar("Inner")

class Closing(Face[Inner], Generic[Inner]):
    """Closed at the end of an ``async with`` block."""

    async def __aenter__(self) -> Self: ...
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    async def close(self) -> None: ...

class AsyncClient(Closing[Client]):
    """A connection to a service whose calls are awaited: what ``asterism.aio.connect`` and ``asterism.aio.open`` give.

    Every method is that of `Client`. It may be used from several event loops, and by any number of tasks at a time. A task that is
    cancelled cancels its request.

    Examples
    --------
    >>> async with asterism.aio.connect("localhost:9669") as client:  # doctest: +SKIP
    ...     graph = await client.graph("papers")
    ...     batches = await asyncio.gather(*(graph.sample_nodes(256, "paper", seed=i) for i in range(100)))
    """

    async def backup(
        self,
        space: str,
        address: str | Path,
        *,
        version: int | None = None,
        timeout_s: float = 24 * 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> BackupInfo:
        """Keep a version of a space at an address, written by the storageds; as `asterism.backup.backup`. Needs fsspec."""

    async def begin_load(self, space: str, *, source: str = "", resume_key: str = "") -> AsyncLoad:
        """Begin a load, or find the one that bears ``resume_key``: committed from this ``source``, or open from any.

        Parameters
        ----------
        space : str
            Where it writes to.
        source : str
            Where the rows come from, for people; with what tells them from changed ones.
        resume_key : str
            A name under which the load is found again; empty: always a new one. One that is committed already takes nothing
            more: its ``commit_number`` says so.
        """

    async def close(self) -> None:
        """Let go of the connection; of an embedded service too, in the process that opened it."""

    async def create_space(self, name: str, schema: Schema | Mapping[str, Any], *, if_not_exists: bool = False) -> SpaceInfo:
        """Make a space.

        Parameters
        ----------
        name : str
            Its name.
        schema : Schema or mapping
            What it holds; a mapping is read by ``Schema.from_dict``.
        if_not_exists : bool
            A space of that name with an equal schema is then given back.

        Raises
        ------
        Conflict
            Where there is one of that name (with another schema).
        NotReady
            Where no storaged is online to hold its parts.
        """

    async def describe(self, name: str) -> SpaceInfo:
        """One space; NotFound where there is none of that name."""

    async def drop_space(self, name: str, *, if_exists: bool = False) -> None:
        """Remove a space with all that it holds."""

    async def graph(self, name: str) -> AsyncGraph:
        """The graph in a space: sampling, reading, small writes. The space is looked for at once."""

    async def hosts(self) -> list[Host]:
        """The daemons that metad has heard of."""

    async def job(self, job_id: int) -> Job:
        """How a job stands."""

    async def jobs(self, space: str | None = None, states: Iterable[str] = (), limit: int = 50, before: int = 0) -> list[Job]:
        """Jobs, newest first.

        Parameters
        ----------
        space : str, optional
            Only its jobs.
        states : iterable of str
            Only jobs in these states (``"RUNNING"``, ...); none: all.
        limit : int
            At most so many, up to 1000.
        before : int
            Only jobs with a smaller id: the last one of the page before.
        """

    async def load_graph(
        self,
        space: str,
        graph: Any,
        *,
        nodes: Any = None,
        ends: tuple[str, str] = ("src", "dst"),
        weights: str | Mapping[str, str] | None = None,
        rename: Mapping[str, str] | None = None,
        only: Iterable[str] | None = None,
        fill: Mapping[str, Any] | None = None,
        node_type: str = "node",
        relation: str = "edge",
        parts: int = 8,
        direction: str = "both",
        ids: str = "per_type",
        salt: int = 0,
        build: bool = False,
    ) -> LoadedGraph:
        """Load a graph of PyG, DGL, NetworkX, igraph, SciPy or pandas into a space, made where it is not there, and commit it.

        Arguments, answer and errors as of `asterism.objects.load_graph`; ``docs/loading.md`` says what becomes of what.
        """

    async def manifest(self, space: str, version: int = 0) -> VersionInfo:
        """One version with its totals; 0 is the current one."""

    async def pins(self, space: str | None = None) -> list[PinInfo]:
        """Who holds which versions, of one space or of all; see ``Graph.pin``."""

    async def query(self, statement: str, parameters: Mapping[str, Any] | None = None, *, space: str | None = None, language: str = "ngql") -> Result:
        """Run statements in the style of nGQL, and give the last one's table; ``docs/statements.md`` has them all.

        Parameters
        ----------
        statement : str
            One, or several with ``;`` between.
        parameters : mapping, optional
            What the text calls ``$name``: numbers, texts, and arrays of them.
        space : str, optional
            Where they begin; None: they say so themselves (``USE``). ``Result.space`` is where they end.
        language : {"ngql", "euler"}
            ``"euler"``: Euler's GQL.

        Raises
        ------
        InvalidRequest
            Where it is none: the message shows the line with a caret, ``error.place`` has what was expected, and whether it is cut short.

        Examples
        --------
        >>> client.query("USE shop; SAMPLE 100 VERTICES ON item WHERE price > $least YIELD id, price", {"least": 3})  # doctest: +SKIP
        """

    async def recover_job(self, job_id: int) -> Job:
        """Let a failed or stopped job go on from what it has done, with the same input."""

    async def restore(
        self, address: str | Path, name: str | None = None, *, timeout_s: float = 24 * 3600.0, on_progress: Callable[[Job], None] | None = None
    ) -> SpaceInfo:
        """Make a space of a backup, with the same version, digest and draws; as `asterism.backup.restore`. Needs fsspec."""

    async def spaces(self) -> list[SpaceInfo]:
        """All spaces."""

    async def stop_job(self, job_id: int) -> Job:
        """Ask a job to stop."""

    async def submit_job(self, space: str, kind: str = "build", *, options: Mapping[str, str] | None = None, version: int = 0) -> Job:
        """Ask for a job; an equal one that waits or runs is given back instead.

        Parameters
        ----------
        space : str
            What it works on. Jobs of a space run one after the other, those of other spaces beside them.
        kind : str
            ``"build"`` publishes what is committed as the next version. ``"audit"`` reads a version again on every storaged:
            checksums, totals, the law of every alias table and row, both copies of every edge; it fails with the place where
            something is wrong. ``"index"`` is a build that adds an index, for draws under conditions; later builds keep
            it. ``"export-tables"`` writes alias tables to files. ``"compact"`` gives the disk space of deleted blocks back.
        options : mapping of str to str, optional
            Of ``"export-tables"``: ``format`` (``"parquet"``, ``"csv"`` or ``"csv,parquet"``) and ``to``, a folder that every
            storaged can write to and the setting ``allowed_addresses`` lists, as ``"s3://bucket/folder"``; without it, files go to each
            storaged's own folder ``exports``.
            Of ``"index"``: ``type``, a node type; ``on``, a column; ``kind``, ``"range"`` or ``"hash"`` (texts too); ``drop="yes"``.
            Of ``"build"`` and ``"index"``: ``link="no"`` makes every part anew; without it what did not change is shared with versions before.
        version : int
            Which one an audit or an export reads; 0 is the current one.

        Raises
        ------
        InvalidRequest
            For a kind, an option or a value that there is not.
        NotFound
            Where the space or the version is not there.
        NotReady
            Where nothing is committed to build, or published to read.
        """

    @property
    def traffic(self) -> Traffic:
        """What was asked by now: calls, requests of graphds, retries, hedges, calls of storageds; nothing where the service is in this process."""

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
    ) -> Report:
        """Hold a version's draws against its weights; ``report.passed`` says whether they follow them.

        Arguments, law and errors as of `asterism.verification.verify`.
        """

    async def versions(self, space: str) -> list[VersionInfo]:
        """The published versions that are held, newest first, without their totals."""

    async def wait(self, job_id: int, *, timeout_s: float = 3600.0, on_progress: Callable[[Job], None] | None = None) -> Job:
        """Wait until a job has ended, whichever way; its state says which.

        Parameters
        ----------
        job_id : int
            The job.
        timeout_s : float
            Seconds to wait at most.
        on_progress : callable, optional
            Called with the job at every look.

        Raises
        ------
        Deadline
            Where it has not ended by then; it goes on.
        """

class AsyncGraph(Closing[Graph]):
    """The graph in a space, whose calls are awaited: what ``await client.graph(name)`` gives. Every method is that of `Graph`."""

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
        weights: bool = True,
        edge_ids: bool = False,
        version: int | None = None,
    ) -> Adjacency:
        """The edges from some nodes to others, as a sparse matrix is made of them.

        Parameters
        ----------
        rows, cols : int64[m], int64[c]
            Node ids; -1 and unknown ones have no edges. One that is there twice has its edges twice.
        etypes : str or list of str, optional
            Edge types; None: all.
        row_type, col_type : str or int[m] or int[c], optional
            Their types. They may be left out where the edge types leave one choice, and in a space of global ids.
        direction : {"out", "in"}
            Edges from rows to cols, or from cols to rows (where the schema keeps in-copies).
        weight, where, weights, edge_ids
            As of `neighbors`.

        Returns
        -------
        Adjacency
            In canonical order, an entry per edge.

        Examples
        --------
        >>> found = graph.adjacency(layer, pool, "cites")  # doctest: +SKIP
        >>> scipy.sparse.coo_array((found.weights, (found.rows, found.cols)), found.shape)  # doctest: +SKIP
        """

    def at(self, version: int) -> AsyncGraph:
        """The same graph, where every call reads this version. It is not held: once it is gone, calls are NotFound; see `pin`."""

    async def build(self, wait: bool = True, *, timeout_s: float = 3600.0) -> Job:
        """Build and publish what is committed.

        Parameters
        ----------
        wait : bool
            Until it is published; False gives the job back at once.
        timeout_s : float
            Seconds to wait at most.

        Raises
        ------
        NotReady
            Where the build failed or was stopped; the message has the cause.
        """

    async def close(self) -> None:
        """Close the client that this graph belongs to; so does the end of a ``with`` block."""

    async def cluster_batches(
        self,
        clusters: Given,
        q: int,
        etypes: Names = None,
        *,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: Columns = None,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> AsyncClusterPasses:
        """Every cluster once an epoch, q of them at a time, each batch with all edges among its nodes (Cluster-GCN).

        Parameters
        ----------
        clusters : str, Path, Clusters, or dict of node type to (nodes, clusters)
            Which nodes belong together: a folder that ``asterism export assignment`` wrote, by METIS or streaming; arrays, where nodes that are
            not named are in no batch; or `asterism.clusters.Clusters`, which a feature may number too.
        q : int
            Clusters of a batch; the last one of an epoch may have fewer.
        etypes, weight, where, direction, weights, edge_ids, node_features
            As of `induced_subgraph`.
        seed, rank, world, version
            As of `node_batches`; clusters are shared over ranks, not nodes.

        Returns
        -------
        ClusterPasses
            Go through it once an epoch; each batch is a `ClusterBatch`. ``state_dict``, ``load_state_dict`` and ``reshard`` as of `node_batches`.

        Raises
        ------
        InvalidRequest
            Where the clusters are of another version than is read; of a batch: where its edges do not fit into one reply.

        Notes
        -----
        Chiang et al. 2019, *Cluster-GCN: an efficient algorithm for training deep and large graph convolutional networks*, KDD, section 3.2: with
        stochastic multiple partitions, so that edges between the clusters of a batch are there, and the clusters that meet are others each epoch.

        Examples
        --------
        >>> for batch in held.cluster_batches("clusters", 20, "cites", node_features=["vec"], seed=1):  # doctest: +SKIP
        ...     step(batch.subgraph)
        """

    async def count_edges(self, etype: str, *, where: str = "", version: int | None = None) -> int:
        """How many edges of a type there are, or satisfy a condition."""

    async def count_nodes(self, ntype: str, *, version: int | None = None) -> int:
        """How many nodes of a type there are."""

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
        version: int | None = ...,
    ) -> NDArray[np.float64]: ...
    async def delete_edges(self, src: ArrayLike, dst: ArrayLike, etype: str, edge_ids: ArrayLike | None = None) -> int:
        """Delete edges by (src, dst, edge id), or every one between two nodes; give back the commit number."""

    async def delete_nodes(self, ids: ArrayLike, ntype: str) -> int:
        """Delete nodes, and every edge at them; give back the commit number."""

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
    ) -> AsyncEdgePasses:
        """Every edge of a type once an epoch, in shuffled batches: for training on links.

        Parameters
        ----------
        etype : str
            The edge type.
        batch_size : int
            Edges of a batch; the last one of an epoch may have fewer.
        weight : str
            The name of the weights to give back; "" are the edges' own.
        where : str
            As of `sample_edges`: only edges that satisfy it, such as those of a training split.
        seed, rank, world, version
            As of `node_batches`.

        Returns
        -------
        EdgePasses
            Go through it once an epoch; each batch is an `EdgeRows`. ``state_dict``, ``load_state_dict`` and ``reshard`` as of
            `node_batches`.

        Examples
        --------
        >>> for edges in graph.edge_batches("cites", 1024, where="year < 2019", seed=1):  # doctest: +SKIP
        ...     train(graph.link_seeds(edges, "cites", mode="triplet", amount=5))
        """

    async def edge_features(
        self, edge_ids: ArrayLike, names: str | Iterable[str], etype: str, *, version: int | None = None
    ) -> dict[str, FeatureValue]:
        """Feature columns of edges of one type, by edge id; as `node_features` otherwise."""

    async def edges_at(self, etype: str, places: ArrayLike, *, weight: str = "", where: str = "", version: int | None = None) -> EdgeRows:
        """Edges by their place in a scan of their type: what a shuffled pass over all edges is made of.

        Parameters
        ----------
        etype : str
            The edge type.
        places : int64[m]
            0 to `count_edges` - 1, in the order of `Graph.scan_edges`; under a condition, among the edges that satisfy it.
        weight : str
            The name of the weights to give back; "" are the edges' own.
        where : str
            As of `sample_edges`: other edges have no place.

        Returns
        -------
        EdgeRows

        Raises
        ------
        InvalidRequest
            Where there is no such place.

        Examples
        --------
        >>> graph.edges_at("cites", [0, 5]).src  # doctest: +SKIP
        array([ 0, 40])
        """

    @property
    def explain(self) -> AsyncExplainer:
        """The sampling calls, each of which tells what it takes: ``graph.explain.sample_nodes(...)``.

        The call is made, and gives an `Explanation` instead of its sample: which share of the draws falls on each type and part,
        how many are expected and how many there are, which storaged is asked for how much, in how many rounds and bytes.
        """

    async def find_nodes(self, ids: ArrayLike, ntype: str) -> NDArray[np.bool_]:
        """bool[n]: which ids were committed as nodes of a type, published or not."""

    async def graph_nodes(self, labels: Iterable[bytes | str], *, version: int | None = None) -> GraphNodes:
        """The nodes of graphs.

        Parameters
        ----------
        labels : list of bytes or str
            Text counts as UTF-8.

        Returns
        -------
        GraphNodes
            Row i is label i's nodes by (type, id); empty where no node has it.

        Raises
        ------
        InvalidRequest
            Where no node type declares a graph label.
        """

    async def induced_subgraph(
        self,
        nodes: ArrayLike,
        etypes: Names = None,
        *,
        indptr: ArrayLike | None = None,
        ntype: NodeTypes = None,
        weight: str = "",
        where: str = "",
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: Columns = None,
        version: int | None = None,
    ) -> Subgraph:
        """All edges among some nodes, as one subgraph with nodes numbered from 0.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 is no node. One that is given twice is there once.
        etypes : str or list of str, optional
            Edge types; None: all.
        indptr : int64[g + 1], optional
            The nodes are g groups, group i being ``nodes[indptr[i]:indptr[i + 1]]``: each has a component of its own, in which a
            node of several groups is there again, and edges join nodes of one group only.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where all edge types begin and end at the same one, and in a space of
            global ids.
        weight, where
            As of `neighbors`: the weights to give, and which edges count.
        direction : {"out", "in"}
            Whether edges are read at their sources or at their destinations (where the schema keeps in-copies). They are the same ones, in
            another order.
        weights, edge_ids : bool
            Whether to give these too.
        node_features : list of str, or dict of node type to list of str
            As of `sample_subgraph`.

        Returns
        -------
        Subgraph
            ``seeds`` has the number of each given node, ``batch`` the group of each node where there are groups; nothing is drawn, so
            that ``seed`` is 0 and ``token`` empty. Edges are by (number of the end that ``direction`` begins at, neighbor id, edge id).

        Raises
        ------
        InvalidRequest
            Where the edges do not fit into one reply: ask for fewer nodes, or without edge ids.

        Notes
        -----
        Parallel edges are all there, and loops. A node that the version does not have keeps its number and has no edges.

        Examples
        --------
        >>> found = graph.induced_subgraph([3, 7, 12], "cites")  # doctest: +SKIP
        >>> found.row["paper:cites:paper"], found.col["paper:cites:paper"]  # doctest: +SKIP
        """

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
    ) -> LinkSeeds:
        """Positive edges with negatives beside them: what models of links are trained on.

        Parameters
        ----------
        edges : EdgeRows, EdgeSample or int64[m, 2]
            The positives, of `edges_at`, `edge_batches` or `sample_edges`, or pairs of ids (source, destination).
        etype : str
            Their edge type: negatives join nodes of the same types.
        mode : {"binary", "triplet"}
            Negative pairs with a source of their own, labelled; or, for each positive, negative destinations of its source.
        amount : float
            Negatives for each positive. Binary: m * amount pairs, rounded up. Triplet: a whole number.
        weight : str, optional
            Negative destinations in proportion to these weights of nodes: "" are their own, otherwise a table's name. None: uniformly.
            For degree^0.75 (Mikolov et al. 2013) declare a table ``pow(in_degree, 0.75)``: builds count edges (docs/loading.md).
        src_weight : str, optional
            The sources of negative pairs likewise; binary alone.
        exclude : bool
            Leave out every destination that an edge of this type leads to from the source, in the version that is read. False: a negative
            may be an edge (PyG), but no triplet's negative is its own positive.

        Returns
        -------
        LinkSeeds
            All of one version.

        Raises
        ------
        InvalidRequest
            Where mode or amount are none, or edges do not say pairs.

        Notes
        -----
        The shapes are those of PyG's ``NegativeSampling``. A negative's source u is drawn by the sources' weights (binary) or given
        (triplet); its destination is v with probability w_v / (the weight of all destinations that are not left out for u), every draw by
        itself and keyed by its place in the batch. Where everything is left out for u there is no negative: a pair is not given, so that
        there are fewer; a triplet has -1.

        Examples
        --------
        >>> for edges in graph.edge_batches("cites", 512, seed=1):  # doctest: +SKIP
        ...     links = graph.link_seeds(edges, "cites", amount=2, seed=7)
        ...     batch = graph.sample_subgraph(np.concatenate([links.src, links.dst]), [10, 5], "cites")
        """

    async def manifest(self, version: int | None = None) -> VersionInfo:
        """What a version holds of every type, with its digest; None: the current one."""

    def metapaths(self, text: str) -> tuple[Metapath, ...]:
        """Metapaths as PGLBox writes them, ``u2click2i-i2click2u;i2click2u-u2click2i``, in the types of this space.

        Raises
        ------
        InvalidRequest
            Where a step means nothing here; the message says which, and where it stands. See `asterism.metapaths`.

        Examples
        --------
        >>> for path in graph.metapaths("u2buys2i-i2bought2u;u2follows2u"):  # doctest: +SKIP
        ...     graph.random_walk(users, path, 24, walks=10, first_step="distinct")
        """

    async def multi_hop_neighbors(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        edge_ids: bool = False,
        version: int | None = None,
    ) -> MultiHop:
        """All neighbors, all of theirs, and so on: of each hop every node once, and the edges that lead to it.

        Parameters
        ----------
        nodes : int64[m]
            Where to start; -1 and unknown ones have no neighbors.
        metapath : list of (str or list of str)
            The edge types of each hop.
        ntype, direction, weight, where, edge_ids
            As of `neighbors`.

        Returns
        -------
        MultiHop
            All of one version.
        """

    async def neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        *,
        ntype: NodeTypes = None,
        direction: str = "out",
        weight: str = "",
        where: str = "",
        sort: str | None = None,
        weights: bool = True,
        edge_ids: bool = True,
        version: int | None = None,
    ) -> Ragged:
        """All neighbors of each node.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 and unknown ones have no neighbors.
        etypes : str or list of str, or None
            Edge types; None: all.
        ntype, direction, weight, where, weights, edge_ids
            As of `sample_neighbors`.
        sort : {None, "id", "weight"}
            Of each row: by (edge type as asked for, id, edge id); by id over all types; by weight, largest first, ties by id.

        Returns
        -------
        Ragged
            Row i is ``nodes[indptr[i]:indptr[i + 1]]``, and so for ``types``, ``weights`` and ``edge_ids``.
        """

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
    ) -> AsyncNodePasses:
        """Every node of a type once an epoch, in shuffled batches: for training, or for inference over all nodes.

        Parameters
        ----------
        ntype : str
            The node type.
        batch_size : int
            Nodes of a batch; the last one of an epoch may have fewer.
        among : int64[m], optional
            These instead of every node of the type; all ranks give the same, in the same order.
        seed : int, optional
            Of the order. Several ranks must give the same.
        rank, world : int
            Give the share of one of so many trainers; together they visit every node once.
        version : int, optional
            None: the current one, which it stays with. Pin it for as long as the epochs last.

        Returns
        -------
        NodePasses
            Go through it once an epoch; ``state_dict`` and ``load_state_dict`` resume it, and ``reshard`` with another ``world``.

        Examples
        --------
        >>> for nodes in graph.node_batches("paper", 1024, seed=1):  # doctest: +SKIP
        ...     infer(graph.sample_subgraph(nodes, [15, 10], "cites"))
        """

    async def node_features(
        self, nodes: ArrayLike, names: str | Iterable[str], ntype: str | None = None, *, version: int | None = None
    ) -> dict[str, FeatureValue]:
        """Feature columns of nodes.

        Parameters
        ----------
        nodes : int64[m]
            Of one type; -1 and unknown ones have zeros, or empty rows.
        names : str or list of str
            Features; ``"weight"`` is the node's weight.
        ntype : str, optional
            May be left out where one node type only has these features.

        Returns
        -------
        dict
            By name: ``[m, *shape]`` where dense, ``(indptr int64[m + 1], values)`` where ragged or bytes.
        """

    async def node_ids(self, names: ArrayLike, ntype: NodeTypes = None, *, missing: str = "fail", version: int | None = None) -> Ids:
        """The ids of nodes that are called by strings (``ids: string``).

        Every call that takes nodes takes their names too. For many calls about the same nodes take their ids once: whole numbers
        travel without a look at what they are called.

        Parameters
        ----------
        names : str[...]
            An array or list of any shape, or one string; ``""`` is no node.
        ntype : str or int[...], optional
            Of the nodes, or of each; None: of whatever type.
        missing : {"fail", "none"}
            Whether a name that no node has is refused, or -1.
        version : int, optional
            A published one; None: the current one.

        Returns
        -------
        int64[...]
            In the shape of ``names``.

        Raises
        ------
        NotFound
            With the first name that no node of the version has (``missing="fail"``).
        InvalidRequest
            Where ids of the space are no strings, or one is no name: longer than 256 bytes in UTF-8, or with a NUL character.

        Examples
        --------
        >>> graph.node_ids(["SFO", "JFK"], "airport")  # doctest: +SKIP
        array([5405137366318178033, 3107341164023113263])
        """

    async def node_names(self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None) -> NDArray[np.str_]:
        """What nodes are called, in a space with ``ids: string``.

        Parameters
        ----------
        ids : int64[...]
            Of any shape, as records have them; -1 is no node.
        ntype : str or int[...], optional
            Of the nodes, or of each (ids of node types); None: of whatever type.
        version : int, optional
            That of the record which the ids are of; None: the current one.

        Returns
        -------
        str[...]
            In the shape of ``ids``; ``""`` for -1.

        Raises
        ------
        NotFound
            With the first id that is no node's in the version.
        InvalidRequest
            Where ids of the space are no strings.

        Examples
        --------
        >>> near = graph.sample_neighbors(["SFO"], "route", 3, seed=1)  # doctest: +SKIP
        >>> graph.node_names(near.nodes, "airport", version=near.version)  # doctest: +SKIP
        array([['LAX', 'JFK', 'SEA']], dtype='<U3')
        """

    async def node_types(self, ids: ArrayLike, ntype: NodeTypes = None, *, version: int | None = None) -> Types:
        """The type of each node.

        Parameters
        ----------
        ids : int64[m]
        ntype : str or int[m], optional
            In a space whose ids are per type the same id may be a node of several: say of which, and the answer tells whether there is
            such a node. In a space of global ids leave it out.

        Returns
        -------
        int32[m]
            Node type ids, positions in ``schema.node_types``; -1 where there is no such node in the version.

        Examples
        --------
        >>> graph.node_types([7, 10**12])  # doctest: +SKIP
        array([ 1, -1], dtype=int32)
        """

    async def nodes_at(self, ntype: str, places: ArrayLike, *, version: int | None = None) -> Ids:
        """Nodes by their place in a scan of their type: what a shuffled pass over all nodes is made of.

        Parameters
        ----------
        ntype : str
            The node type.
        places : int64[m]
            0 to `count_nodes` - 1, in the order of `Graph.scan_nodes`.

        Returns
        -------
        int64[m]

        Raises
        ------
        InvalidRequest
            Where there is no such place.

        Examples
        --------
        >>> graph.nodes_at("paper", [0, 5])  # doctest: +SKIP
        array([ 0, 40])
        """

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
        direction: str = "out",
        version: int | None = None,
    ) -> PageRanks:
        """The k nodes at which random walks from each node end most often, with how often: personalised PageRank by forward push.

        A walk ends where it is with probability ``alpha`` before each step, and at a dead end; the probability that a walk from
        s ends at v is ppr(v). Without a draw, and within bounds: see Notes.

        Parameters
        ----------
        nodes : int64[m]
            Where walks start; -1 and unknown ones have no row of nodes.
        etypes : str or list of str, or None
            Edge types, over which walks go together; None: all. Where none begins is a dead end.
        k : int
            Nodes to give for each: the start is one, as a rule the first.
        alpha : float
            Above 0, at most 1.
        epsilon : float
            How much a node may hold back, per unit of what its edges weigh together (its degree, where edges are counted);
            1e-12 to 1. What is read and done for a node grows as 1 / (alpha * epsilon) at most, where every edge weighs 1.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where the edge types start at the same one.
        weighted, weight, where, direction
            As of `random_walk`: a step goes along an edge by its weight, or (``weighted=False``) along each alike.

        Returns
        -------
        PageRanks
            ``nodes`` int64[m, k], ``types`` int32[m, k], ``scores`` float64[m, k]: highest score first, ties by id, then by type;
            padded with -1 and 0. ``residuals`` float64[m].

        Raises
        ------
        InvalidRequest
            Where a limit is met: the answer does not fit into one reply, a node comes to too many others, the neighborhoods of all
            have too many edges. The message says which, and what to do.

        Notes
        -----
        Andersen, Chung & Lang 2006, *Local graph partitioning using PageRank vectors*, FOCS, with the walk that is not lazy, as
        Bojchevski et al. 2020 (PPRGo, KDD) and Fey et al. 2021 (GNNAutoScale, ICML) have it. In rounds: every node u that holds back
        r(u) > epsilon * d(u), d(u) being what its edges weigh together, keeps alpha * r(u) as score and hands the rest on. A
        start hands on once at least. So

        * 0 <= ppr(v) - score(v) <= ``residuals`` for any graph;
        * ppr(v) - score(v) <= epsilon * d(v) where every edge is there in both directions by the same weight.

        The same bytes on any number of hosts, and whatever else is asked for together.

        Examples
        --------
        >>> near = graph.personalized_pagerank([7], "cites", 32, epsilon=1e-5)  # doctest: +SKIP
        """

    def pin(self, version: int | None = None, *, term_s: float = TERM_S, owner: str | None = None) -> AsyncPinned:
        """Hold a version while a block runs, however many newer ones are published meanwhile.

        The lease on it is renewed by a thread, at a third of its term. Where it could not be, the next call says so; none is
        ever answered from another version. A process that dies loses its lease; a forked one reads while its parent holds it.

        Parameters
        ----------
        version : int, optional
            One that is served; None: the current one.
        term_s : float
            How long the version stays without a word from here, in seconds.
        owner : str, optional
            Who holds it, for those who wonder why it stays; None: this host and process.

        Returns
        -------
        Pinned
            Enter it: ``with graph.pin() as held``; ``held`` is this graph `at` the version.

        Raises
        ------
        NotFound
            At the block's begin, where there is no such version; in it, where the pin has ended: release it, and pin anew.
        Stale
            In the block, where the pin could not be renewed for a whole term.
        InvalidRequest, Busy
            At its begin: a term out of bounds; as many pins as the space may have.

        Examples
        --------
        >>> with graph.pin() as held:  # doctest: +SKIP
        ...     for epoch in range(10):
        ...         train(held)
        """

    async def query(self, statement: str, parameters: Mapping[str, Any] | None = None, *, language: str = "ngql") -> Result:
        """Run statements about this graph, and give the last one's table: as ``Client.query``, at the version that this graph is at.

        Examples
        --------
        >>> graph.query("SAMPLE 10 NEIGHBORS FROM $users OVER buys YIELD src, dst, dst.price SEED 7", {"users": users})  # doctest: +SKIP
        """

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
        p: float = 1.0,
        q: float = 1.0,
        restart: float = 0.0,
        direction: str = "out",
        walks: int | None = None,
        first_step: str = "independent",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> WalkSample:
        """Walk from each node: every step goes to one neighbor, drawn by edge weight or uniformly.

        Parameters
        ----------
        nodes : int64[m]
            Where to start; a node that is there twice walks twice, each walk by itself. -1 goes nowhere.
        metapath : list of (str or list of str), optional
            The edge types of each step, begun again where the walk is longer; one of `metapaths`; None: every edge type at
            every step. One whose edge types start elsewhere than where a walk is, is a dead end to it.
        length : int, optional
            Steps; as many as ``metapath`` has where left out.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where the first step's edge types start at the same one.
        weighted, weight, where
            By edge weight, of that name ("" are the edges' own); otherwise uniformly over edges; a condition as of `sample_neighbors`.
        p, q : float
            node2vec's: a step back to where the walk was is 1 / p times as likely as its weight alone makes it, a step to a node
            that is not joined to where the walk was 1 / q times; in 0.001 .. 1000. Joined is: there is an edge to it along the
            edge types of the step before. The first step, and the one after a restart, know no p and q.
        restart : float
            The probability that a step leads back to the start instead, in 0 .. 1; a walk at a dead end may return too.
        direction : {"out", "in"}
            Along the edges, or against them (where the schema keeps in-copies).
        walks : int, optional
            Walks from each node; None: one.
        first_step : {"independent", "distinct"}
            "distinct": the first step goes to ``walks`` different neighbors, without replacement (by the weight of all edges to
            each, of whatever type), and a walk goes on from each that there is: a node with two has two walks, one without none.
        edge_ids : bool
            Whether to give the edges' ids too.

        Returns
        -------
        WalkSample
            ``nodes`` int64[m, length + 1], the start first; behind a dead end -1. With ``walks``, ``starts`` says whose each is.

        Notes
        -----
        With p = q = 1 and without restart, step s is the draw that `sample_fanout` makes of one neighbor at hop s, so that both give the
        same nodes for the same seed. Walk j of node i is drawn as number ``i * walks + j``, however many others there are. p and
        q: Grover & Leskovec 2016, *node2vec*, KDD, section 3.2; drawn exactly, by acceptance.

        Examples
        --------
        >>> graph.random_walk([1, 2], ["follows", "likes"], 4, seed=3).nodes.shape  # doctest: +SKIP
        (2, 5)
        """

    async def replay(
        self,
        token: str,
        nodes: ArrayLike | None = None,
        ntype: ArrayLike | None = None,
        *,
        exclude: arguments.Excluded = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Make a sampling call again: the same record, whoever made the call, wherever and whenever.

        Parameters
        ----------
        token : str
            Of a sample: its ``token``. It holds everything that was asked but the nodes.
        nodes : int64[m], optional
            The nodes that the call started from, where it started from nodes.
        ntype : int[m], optional
            Their types, where the call had one for each.
        exclude : optional
            Of `sample_negatives`, whose pairs are ``nodes``.
        times : int64[m] or float64[m], optional
            The times of the nodes, where the call had them.

        Returns
        -------
        NodeSample, or whatever record the call gave
            Of the same version, to the last bit.

        Raises
        ------
        InvalidRequest
            Where the token is none, or of another space, or the nodes are not the same.
        NotFound
            Where the version is no longer held, or is another one by the same number.

        Examples
        --------
        >>> first = graph.sample_neighbors(seeds, "cites", 5)  # doctest: +SKIP
        >>> again = graph.replay(first.token, seeds)  # doctest: +SKIP
        """

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
    ) -> EdgeSample:
        """Draw edges, by edge weight or uniformly.

        Parameters
        ----------
        n : int
            How many.
        etype : str or list of str, optional
            From these types together (a triple, or a relation where that is unambiguous); None: from all.
        weighted, weight, where, replace, probabilities
            As of `sample_nodes`; the weights of that name are given back too. Conditions on edges may read ``src`` and ``dst``, and
            features of these nodes: ``"rating >= 4 and dst.price < 10"``.

        Returns
        -------
        EdgeSample
            ``src``, ``dst``, ``edge_ids`` int64[n], ``types`` int32[n], ``weights`` float32[n], ``probabilities`` float64[n] or None.
        """

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
        replace: bool = False,
        direction: str = "out",
        disjoint: bool = True,
        expand: str = "first",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: Columns = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """A subgraph around each seed: nodes sampled hop by hop, and all edges among them (ShaDow).

        Parameters
        ----------
        seeds : int64[m]
            Node ids, the roots; -1 is no node. One that is given twice has two subgraphs, with draws of their own.
        fanouts, etypes
            As of `sample_subgraph`: how nodes are met.
        among : str or list of str, optional
            The types of the edges among the nodes that are given; None: those that are followed.
        ntype, weighted, weight, replace, direction
            As of `sample_subgraph`.
        where : str
            As of `sample_neighbors`, of the edges that are followed and of those that are given.
        disjoint : bool
            A component of its own for every seed (Zeng et al., and PyG); otherwise one subgraph of all seeds' nodes (DGL).
        expand : {"first", "every"}
            As of `sample_subgraph`. DGL's ``ShaDowKHopSampler`` expands all nodes in every hop, by its fanouts from the last to the
            first; PyG's a node in the hop after the one that met it, as often as it was met.
        weights, edge_ids, node_features
            As of `sample_subgraph`.

        Returns
        -------
        Subgraph
            ``seeds`` says where each root is, ``batch`` which seed's component a node is of: those of a component are side by side, the
            root first, the others in the order in which they were met. Edges as of `induced_subgraph`.

        Raises
        ------
        InvalidRequest
            As of `sample_subgraph`; also where the edges do not fit into one reply.

        Notes
        -----
        There are no times here: all edges among nodes would show a seed what came after it.

        Zeng et al. 2021, *Decoupling the depth and scope of graph neural networks*, NeurIPS, section 3.3. The nodes are those of
        `sample_subgraph` with the same arguments and seed, to the last one; draws are keyed by (hop, edge type, the seed's place, node, k).

        Examples
        --------
        >>> batch = graph.sample_ego_subgraphs(papers, [10, 5], "cites", direction="in", seed=3)  # doctest: +SKIP
        >>> roots = embeddings["paper"][batch.seeds]  # doctest: +SKIP
        """

    async def sample_fanout(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        fanouts: Sequence[int],
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = True,
        direction: str = "out",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = True,
        edge_ids: bool = False,
        probabilities: bool = False,
        node_features: Columns = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> FanoutSample:
        """Draw neighbors of neighbors: hop h draws ``fanouts[h]`` neighbors of every entry of the hop before.

        Parameters
        ----------
        nodes : int64[m]
            Where to start.
        metapath : list of (str or list of str)
            The edge types of each hop.
        fanouts : list of int
            Neighbors per node of each hop.
        ntype, weighted, weight, where, replace, direction, weights, edge_ids, probabilities
            As of `sample_neighbors`.
        times, strict, strategy, edge_times
            As of `sample_neighbors`: the time of each node holds for all that is drawn from it, hop after hop. Hops along edge types
            that have no times are drawn as without; of one hop all have some, or none.
        node_features : list of str, or dict of node type to list of str
            Features of the starts and of every drawn node to bring along, in the same request: of each node type what is named
            for it, or what it has of a list.

        Returns
        -------
        FanoutSample
            ``hops[h].nodes`` is int64[m * fanouts[0] * .. * fanouts[h]], padded with -1; what has no node has no neighbors.
            ``features`` and ``hops[h].features`` are as `Graph.node_features` gives them for these nodes, by node type.

        Examples
        --------
        >>> sample = graph.sample_fanout(seeds, ["cites", "cites"], [15, 10])  # doctest: +SKIP
        >>> sample.hops[1].nodes.reshape(len(seeds), 15, 10)  # doctest: +SKIP
        """

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
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerStack:
        """Draw layer after layer: hop h draws ``counts[h]`` nodes for the layer that the hop before drew.

        Parameters
        ----------
        nodes : int64[m] or int64[b, w]
            The first layer, or b of them. ``nodes[:, None]`` is a layer for each node: its first hop is that node's own neighbors.
        metapath : list of (str or list of str)
            The edge types of each hop.
        counts : list of int
            Nodes of each layer.
        measure, ntype, weighted, weight, replace, direction, edge_ids
            As of `sample_layer`.

        Returns
        -------
        LayerStack
            ``layers[h]``, each with the adjacency to the one before.
        """

    async def sample_graph_labels(self, n: int, *, seed: int | None = None, version: int | None = None) -> GraphLabels:
        """Draw labels of graphs, each alike, with replacement.

        Parameters
        ----------
        n : int
            How many. The first m of n draws are the draws of a request for m.

        Returns
        -------
        GraphLabels
            ``labels``, n byte strings.

        Raises
        ------
        NotFound
            Where no node has a label.
        InvalidRequest
            Where no node type declares one.

        Examples
        --------
        >>> batch = graph.graph_nodes(graph.sample_graph_labels(32).labels)  # doctest: +SKIP
        """

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
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: Columns = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Seeds, nodes drawn layer by layer, so many of each type, and all edges among them (HGT).

        Nodes that many of the sample lead to are drawn first: the sample is dense, and has as many nodes of a rare type as of a common one.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        counts : list of int, or dict of node type to list of int
            Nodes to draw in each layer: of each node type, or as a dict says; of types that it does not name none are. Fewer are drawn where
            fewer were given anything.
        etypes : str or list of str, optional
            The types of edges along which nodes give, in the order in which they are; None: all.
        among : str or list of str, optional
            The types of the edges among the nodes that are given; None: those that are followed.
        ntype, node_features
            As of `sample_subgraph`.
        weighted, weight
            Whether a node gives along its edges of one type by their weights, and which; otherwise to all alike, as PyG does.
        where : str
            As of `sample_neighbors`, of the edges that are followed and of those that are given.
        direction : {"out", "in"}
            Along the edges, or against them: "in" meets those whose messages a node gets, as PyG's.
        weights, edge_ids : bool
            Whether to give these too.

        Returns
        -------
        Subgraph
            Nodes are seeds in request order, then layer after layer in the order of the draws; ``num_sampled_nodes`` has the seeds, and each layer.
            Edges as of `induced_subgraph`.

        Raises
        ------
        InvalidRequest
            Where counts are none, the nodes of a layer have more edges than can be read, or the edges do not fit into one reply.

        Notes
        -----
        Hu et al. 2020, *Heterogeneous graph transformer*, WWW, section 3.3; as PyG's ``HGTLoader``. A node that is taken gives each of its edges of
        one type the share that the edge has of all of them; a node that is not taken has the sum of what edges to it were given, its
        budget. A layer is drawn without replacement, by successive draws in proportion to squared budgets, each node type by itself.

        Examples
        --------
        >>> batch = graph.sample_hgt(papers, {"paper": [64, 64], "author": [64, 64]}, ntype="paper", direction="in", seed=3)  # doctest: +SKIP
        >>> batch.num_sampled_nodes["author"]  # doctest: +SKIP
        (0, 64, 64)
        """

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
        direction: str = "out",
        expand: str = "every",
        weights: bool = True,
        edge_ids: bool = True,
        node_features: Columns = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Seeds and neighbors of theirs by layer-neighbor sampling: nodes of a batch meet the same neighbors where they can.

        A node t has one variate for a whole hop, and an edge to it is kept where that is at most the edge's probability.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        fanouts : list of int, or dict of edge type to list of int
            Neighbors per node of each hop, in expectation: of each edge type, or as a dict says; 0 is none, -1 all of positive weight.
        importance : int
            Steps that make neighbors of several nodes more probable and others less, at the same variance of estimates: LABOR-i. 0 is LABOR-0; -1
            as many as it takes until they change little, LABOR-*. At most 100.
        layer_dependency : bool
            Whether a node has the same variate in every hop: fewer different nodes still.
        etypes, ntype, direction, edge_ids, node_features
            As of `sample_subgraph`.
        weighted, weight, where
            As of `sample_neighbors`. An edge of weight 0 is never kept; a node with fewer edges than its fanout keeps all others.
        expand : {"every", "first"}
            Whether neighbors are drawn in every hop from the one on that met a node (DGL), or in the next only (PyG).
        weights : bool
            Whether to give `Subgraph.weights`, for a mean over a node's kept edges: weight over probability, scaled to sum to their number.

        Returns
        -------
        Subgraph
            Numbered as `sample_subgraph` numbers; the edges of a node in the order in which it has them.

        Raises
        ------
        InvalidRequest
            Where ``importance`` is out of bounds, or the nodes of a hop have more edges than can be read.

        Notes
        -----
        Balin & Catalyurek 2023, *Layer-neighbor sampling*, NeurIPS; as DGL's ``LaborSampler``. Variates are keyed by (seed, hop, node type, node),
        whatever is in the batch; with importance steps the probabilities are of the batch as a whole.

        Examples
        --------
        >>> batch = graph.sample_labor([3, 7], [15, 10], "cites", importance=1, direction="in")  # doctest: +SKIP
        >>> batch.weights["paper:cites:paper"]  # doctest: +SKIP
        """

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
        replace: bool = True,
        direction: str = "out",
        edge_ids: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> LayerSample:
        """Draw n nodes for a whole layer from the neighbors of all of its nodes, with the edges between the two.

        Parameters
        ----------
        nodes : int64[m] or int64[b, w]
            A layer, or b layers of w nodes, each drawn for by itself; -1 is no node. A node that is there twice counts twice.
        etypes : str or list of str, or None
            Edge types; None: all.
        n : int
            Nodes of each new layer.
        measure : {"sum", "sqrt", "squares"}
            What a neighbor counts, of the edges that lead to it: the sum of their weights; its square root; or the sum, over the
            layer's nodes, of the squared sum of each one's, which are the squared column norms that LADIES draws by.
        ntype : str or int, optional
            As of `sample_neighbors`; in the shape of ``nodes`` where it is an array.
        weighted, weight
            By edge weight, of that name ("" are the edges' own); otherwise every edge weighs 1.
        where : str
            As of `sample_neighbors`: other edges are as if they were not there.
        replace : bool
            False: different nodes, in the order of successive draws; as many as there are where these are fewer than n.
        direction, edge_ids
            As of `sample_neighbors`; ids of the adjacency's edges.

        Returns
        -------
        LayerSample
            ``nodes`` int64[n] or int64[b, n], their ``types`` and ``probabilities``, and the ``adjacency`` of the two layers.

        Notes
        -----
        A node is drawn with probability (what it counts) / (what all neighbors of the layer count): Zou et al. 2019, *Layer-dependent
        importance sampling* (LADIES), NeurIPS, section 3.2, with ``measure="squares"`` and ``replace=False``. FastGCN (Chen, Ma & Xiao 2018, ICLR,
        section 3) draws from all nodes by one law for all layers: that is `sample_nodes` by a named table, and `adjacency`.
        All edges of the layer's nodes are read.

        Examples
        --------
        >>> layer = graph.sample_layer(seeds, "cites", 512, replace=False)  # doctest: +SKIP
        >>> layer.adjacency.rows, layer.adjacency.cols  # doctest: +SKIP
        """

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
        exclude: arguments.Excluded = None,
        exclude_edges: Names = None,
        probabilities: bool = False,
        seed: int | None = None,
        version: int | None = None,
    ) -> NodeRows:
        """Draw n negatives for each pair, or n for all of them: nodes that are not among their positives.

        Parameters
        ----------
        pairs : int64[m] or int64[m, 2]
            One row of negatives for each. Of pairs (source, destination) the destination is a positive; of sources alone nothing is
            known.
        n : int
            Negatives per row.
        ntype : str or list of str, optional
            What negatives are: of these types together; None: of all.
        weighted, weight
            As of `sample_nodes`: by node weight, uniformly, or by a named table, such as ``pow(degree, 0.75)`` of a column.
        where : str
            As of `sample_nodes`, of the negatives.
        shared : bool
            One row of n for the whole batch; it leaves out the positives of every pair.
        exclude : (indptr, ids), Ragged or int64[m, k], optional
            Further positives of each row; -1 is none.
        exclude_edges : str or list of str, optional
            Edge types: whatever an edge of these leads to from a row's source is left out too, so that no negative is a true edge. Sources are not
            read, but asked whether they are joined to what was drawn, whatever degree they have.
        probabilities : bool
            Whether to give back the probability of each draw too: its share of the weight of all that its row does not leave out.

        Returns
        -------
        NodeRows
            ``nodes`` int64[m, n] (or int64[1, n] where shared), ``types`` int32 likewise; -1 where a row leaves nothing to draw.

        Raises
        ------
        NotFound
            Where there is nothing to draw at all.
        InvalidRequest
            Where positives are left out among several types of a space whose ids are per type: ask type by type; where no edge of
            ``exclude_edges`` leads to what is drawn; where ``shared`` or ``probabilities`` is asked for too and the neighbors of all
            sources, which are read then, do not fit into one reply.

        Notes
        -----
        Every draw is by itself: node v with probability w_v / (the weight of all that its row does not leave out). Draw k of row i is
        draw ``i * n + k`` of `sample_nodes` with the same seed unless the row leaves that out; then it is drawn again until it is not.

        Examples
        --------
        >>> edges = graph.sample_edges(512, "cites")  # doctest: +SKIP
        >>> pairs = np.stack([edges.src, edges.dst], axis=1)  # doctest: +SKIP
        >>> graph.sample_negatives(pairs, 5, "paper", exclude_edges="cites").nodes  # doctest: +SKIP
        """

    async def sample_neighbors(
        self,
        nodes: ArrayLike,
        etypes: Names,
        n: int,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
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
    ) -> NeighborSample:
        """Draw n neighbors of each node, over the union of the edge types.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 is "no node" and has no neighbors. A node that is there twice draws twice.
        etypes : str or list of str, or None
            Edge types; None: all.
        n : int
            Neighbors per node.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where all edge types start at the same one.
        weighted : bool
            By edge weight; otherwise uniformly.
        weight : str
            The name of the weights to draw by and to give back: a table of all these edge types; "" are the edges' own.
        where : str
            A condition on the edges, as of `sample_edges`: ``"rating >= 4"``, or of the neighbors, ``"dst.price < 10"`` (against
            the edges' direction: ``src``). Other edges are as if they were not there.
        replace : bool
            False: distinct edges; a node with n or fewer gives all of them.
        direction : {"out", "in"}
            Along the edges, or against them (where the schema keeps in-copies).
        times : int64[m] or float64[m], optional
            The time of each node: edges after it, and edges to later nodes, are as if they were not there. Each edge type, or the type
            of its neighbors, must declare which feature is its time; without ``probabilities``.
        strict : bool
            Edges of that time itself are not there either.
        strategy : {"uniform", "last"}
            "last" takes the n latest of them, the latest first, whatever they weigh; with ``replace=False``. "uniform" draws, by weight where
            ``weighted``. The words are PyG's ``temporal_strategy``.
        edge_times : bool
            Whether to give back the time of each edge too; with ``times``.
        weights, edge_ids : bool
            Whether to give these back too.
        probabilities : bool
            Whether to give back the probability of each drawn edge too: its share of the weight of the node's edges of all
            these types; without replacement, its share of what the node's earlier draws left, and 1 where a node gives all
            that it has. The draws are the same.

        Returns
        -------
        NeighborSample
            ``nodes`` int64[m, n], padded with -1.
        """

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
    ) -> NodeSample:
        """Draw nodes.

        Parameters
        ----------
        n : int
            How many. The first m of n draws are the draws of a request for m.
        ntype : str or list of str, optional
            From these types together; None: from all.
        weighted : bool
            By node weight; otherwise uniformly.
        weight : str
            The name of the weights: a table of all these types (`asterism_proto.tables.WeightTable`); "" are the nodes' own.
        where : str
            A condition on the nodes, such as ``"price > 3 and brand in ('a', 'b')"``: those that satisfy it are drawn by their weights
            among themselves, the others are as if they were not there. "" is none. Words: `asterism_proto.condition`; docs/sampling.md.
        replace : bool
            False: n distinct nodes, in the order of successive draws.
        probabilities : bool
            Whether to give back the probability of each draw too: its share of the weight of all types asked for; without
            replacement, its share of what the earlier draws left. The draws are the same.

        Returns
        -------
        NodeSample
            ``nodes`` int64[n], ``types`` int32[n], ``probabilities`` float64[n] or None.

        Raises
        ------
        NotFound
            Where there is nothing to draw, or no such version.
        InvalidRequest
            Where ``replace=False`` and fewer than n can be drawn, or ``where`` is no condition.

        Examples
        --------
        >>> graph.sample_nodes(4, "paper", seed=7).nodes  # doctest: +SKIP
        array([12, 3, 3, 40])
        """

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
    ) -> NodeRows:
        """Draw n nodes of the type of each node, from the whole graph.

        Parameters
        ----------
        src : int64[m]
            Node ids.
        n : int
            How many of each one's type.
        ntype : str or int[m], optional
            The type of the nodes, or of each: then nothing is looked up, and -1 alone is no node. In a space of global ids it may
            be left out.
        weighted, weight
            As of `sample_nodes`; a table by that name is needed of every type that may be drawn.
        where : str
            As of `sample_nodes`, of the nodes that are drawn.
        unknown : {"error", "none"}
            Whether a node that is not there is refused, or has a row of -1.
        probabilities : bool
            Whether to give back the probability of each draw too: its share of the weight of its type.

        Returns
        -------
        NodeRows
            ``nodes`` int64[m, n], ``types`` int32[m, n].

        Raises
        ------
        NotFound
            Where a node is not there (``unknown="error"``), or there is nothing to draw of a type.

        Notes
        -----
        Draw k of row i is draw ``i * n + k`` of `sample_nodes` of that type with the same seed.

        Examples
        --------
        >>> graph.sample_nodes_like([3, 17], 2, seed=1).nodes.shape  # doctest: +SKIP
        (2, 2)
        """

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
        direction: str = "out",
        seed: int | None = None,
        version: int | None = None,
    ) -> VisitSample:
        """The n nodes that short random walks from each node visit most: PinSAGE's neighbors, with their visits as importance.

        Parameters
        ----------
        nodes : int64[m]
            Where walks start; -1 and unknown ones have no neighbors. A node that is there twice walks by itself each time.
        metapath : list of (str or list of str), or None
            The edge types of each step of a traversal, such as ``["bought", "bought_by"]``; one of `metapaths`; None: one step
            along any edge. It ends where it begins, unless ``traversals`` is 1.
        n : int
            Nodes to give for each.
        walks : int
            Walks from each node.
        traversals : int
            How often a walk goes over the metapath at most. Where each traversal ends is a visit, at the start itself too.
        termination : float
            The probability that a walk ends before a traversal, any but its first; in 0 .. 1.
        ntype : str or int[m], optional
            The type of the nodes, or of each. It may be left out where the first step's edge types start at the same one.
        weighted, weight, where, direction
            As of `random_walk`; PinSAGE's own walks are uniform (``weighted=False``).

        Returns
        -------
        VisitSample
            ``nodes`` and ``counts`` int64[m, n]: by visits, most first, ties by id, then by node type; padded with -1 and 0.
            ``types`` int32[m, n], node types.

        Raises
        ------
        InvalidRequest
            Where the metapath does not end where it begins, or the answer, or one node's walks, do not fit into one reply.

        Notes
        -----
        Walks are those of `random_walk` with the same seed, walks and ``traversals`` times the steps, up to where they end:
        which of them do does not depend on their steps. Ying et al. 2018, *Graph convolutional neural networks for web-scale
        recommender systems*, KDD, section 3.1; over any metapath as DGL's ``RandomWalkNeighborSampler`` has it (where ties go
        to the larger id).

        Examples
        --------
        >>> near = graph.sample_pinsage(items, ["bought_by", "buys"], 10, walks=200, seed=3)  # doctest: +SKIP
        >>> near.counts / near.counts.sum(axis=1, keepdims=True)  # doctest: +SKIP
        """

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
        node_features: Columns = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Seeds, sampled neighbors of theirs, and theirs, hop by hop, as one subgraph with nodes numbered from 0.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        fanouts : list of int, or dict of edge type to list of int
            Neighbors per node of each hop: of each edge type, or as a dict says; 0 is none, -1 all.
        etypes : str or list of str, optional
            Edge types to follow, in the order in which they are; None: those of ``fanouts`` where it is a dict, else all.
        ntype : str or int[m], optional
            The type of the seeds, or of each. It may be left out where all edge types start at the same one.
        weighted, weight, where, replace
            As of `sample_neighbors`; each edge type is drawn from by itself.
        direction : {"out", "in"}
            Along the edges, or against them: "in" gives each node's messages, as PyG and DGL sample.
        disjoint : bool
            A tree of its own for every seed: a node that several seeds reach is there several times (`Subgraph.batch`).
        expand : {"first", "every"}
            Whether a node's neighbors are drawn in the hop after the one that met it (PyG), or in every hop from then on (DGL's blocks).
        times : int64[m] or float64[m], optional
            The time of each seed and its whole tree, ``disjoint``, as in PyG: no later edge is seen, but of types that have no time. One must.
        strict, strategy, edge_times
            As of `sample_neighbors`; of edge types without a time "last" draws.
        weights, edge_ids : bool
            Whether to give these too.
        node_features : list of str, or dict of node type to list of str
            Features of the nodes to bring along, as of `sample_fanout`: a row for each of ``nodes``.

        Returns
        -------
        Subgraph

        Notes
        -----
        Nodes are numbered per type: seeds first, then by first appearance (hop, edge type, source, k). Draws do not depend on the rest of the batch.

        Examples
        --------
        >>> batch = graph.sample_subgraph([3, 7], [15, 10], "cites", direction="in")  # doctest: +SKIP
        """

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
    ) -> AsyncIterator[EdgeBatch]:
        """Every edge of a type once: part after part of the sources, in out-adjacency order, all of one version.

        Arguments as of `scan_nodes`.
        """

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
    ) -> AsyncIterator[NodeBatch]:
        """Every node of a type once: part after part, by id, all of one version.

        Parameters
        ----------
        ntype : str
            The node type.
        names : str or list of str
            Features to bring along.
        weight : str
            The name of the weights to give back; "" are the nodes' own.
        version : int, optional
            None: that of ``after``, or the current one. Pin it for as long as the scan lasts.
        rows : int
            Of a batch at most; a server may give fewer.
        parts : iterable of int, optional
            Of these parts only, in this order; None: all. Several readers may share the parts among them.
        after : Cursor, optional
            Go on behind the batch that had this `NodeBatch.cursor`, with the same ``parts``; its three numbers, as JSON has
            them, will do.

        Examples
        --------
        >>> for batch in graph.scan_nodes("paper", ["year"], after=saved):  # doctest: +SKIP
        ...     write(batch.ids, batch.features["year"])
        ...     saved = batch.cursor
        """

    @property
    def schema(self) -> Schema:
        """What the space holds; type ids are positions in it."""

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
        version: int | None = None,
    ) -> TopNeighbors:
        """The k heaviest edges of each node, over the union of the edge types.

        Parameters
        ----------
        nodes : int64[m]
            Node ids; -1 and unknown ones have no neighbors.
        etypes : str or list of str, or None
            Edge types; None: all.
        k : int
            Edges per node at most, 1 or more.
        ntype, direction, edge_ids, weight, where
            As of `sample_neighbors`.

        Returns
        -------
        TopNeighbors
            ``nodes`` int64[m, k], heaviest first by the weights of that name, which ``weights`` has; ties by (id, edge type as asked
            for, edge id); padded with -1.

        Examples
        --------
        >>> graph.top_k_neighbors([7], "cites", 3).weights  # doctest: +SKIP
        array([[9. , 4.5, 1. ]], dtype=float32)
        """

    async def upsert_edges(
        self, src: ArrayLike, dst: ArrayLike, etype: str, weights: ArrayLike | None = None, features: Features | None = None
    ) -> int:
        """Add edges (``edges: multi``), or replace those between the same nodes (``edges: unique``); give back the commit number.

        Raises
        ------
        InvalidRequest
            Where an end is not a node, unless the edge type says ``missing: create``.
        """

    async def upsert_nodes(self, ids: ArrayLike, ntype: str, weights: ArrayLike | None = None, features: Features | None = None) -> int:
        """Add nodes, or replace those that are there; give back the commit number.

        Durable on return, visible with the next build. Arguments as of ``Load.write_nodes``.
        """

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
        starts: Mapping[str, ArrayLike] = NOT_SAID,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> AsyncPairPasses:
        """Skip-gram pairs of walks along metapaths, from every node of their start types once an epoch.

        Parameters
        ----------
        metapaths : str or list of Metapath
            As `metapaths` reads them, which take turns batch by batch.
        walk_length, walks, first_step, weighted, weight, where
            As of `random_walk` (PGLBox: ``walk_len``, ``walk_times``, ``weighted_sample``).
        window : int
            Places before and behind a node that pair with it (``win_size``).
        batch_size : int
            Nodes that walks of one batch start from.
        negatives : int
            Nodes drawn by weight beside each pair, of the type of its second node (``neg_num``).
        excluded : str
            Pairs of types to leave out, the centre's first: ``w2q;q2t`` (``excluded_train_pair``). Pairs of types that are not on
            a metapath are left out too.
        starts : dict of node type to int64[m]
            Walks start at these instead of at every node of the type (``train_start_nodes``); as `node_batches` has ``among``.
        seed : int, optional
            Of the order of starts, of walks, of pairs and of negatives. Several ranks must give the same.
        rank, world, version
            As of `node_batches`.

        Returns
        -------
        PairPasses
            Go through it once an epoch; each `PairBatch` is shuffled. ``state_dict`` as of `node_batches`.

        Examples
        --------
        >>> passes = graph.walk_pairs("u2click2i-i2click2u;i2click2u-u2click2i", 24, walks=10, window=3, negatives=5)  # doctest: +SKIP
        >>> for batch in passes:  # doctest: +SKIP
        ...     train(batch.pairs, batch.negatives)
        """

class AsyncLoad(Face[Load]):
    """A load under way, whose calls are awaited: what ``await client.begin_load(...)`` gives. Every method is that of `Load`."""

    @property
    def load_id(self) -> int: ...
    @property
    def space(self) -> str: ...
    @property
    def written(self) -> set[int]: ...
    async def abandon(self) -> None:
        """Give the load up: what it wrote is removed."""

    async def commit(self, rejected: int = 0) -> int:
        """Make the load part of what the next build reads; give back its commit number.

        Parameters
        ----------
        rejected : int
            Bad rows that were left out, for the record.
        """

    @property
    def commit_number(self) -> int:
        """Its place in the order of writes; 0 while it is open."""

    async def delete_edges(self, index: int, etype: str, src: ArrayLike, dst: ArrayLike, eids: ArrayLike | None = None) -> int:
        """Delete edges: those with the given ids, or (``eids`` left out, or -1) every one between two nodes."""

    async def delete_nodes(self, index: int, ntype: str, ids: ArrayLike) -> int:
        """Delete nodes, and with them every edge that has one of them as an end; give back how many ids were sent."""

    async def find_nodes(self, ntype: str, ids: ArrayLike) -> NDArray[np.bool_]:
        """bool[n]: which ids exist, committed or written by this load."""

    @property
    def registered(self) -> frozenset[int]:
        """Numbers of the chunks that it has, written or begun."""

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
    ) -> int:
        """Write edges of one type; give back the id of the first one, the others' follow.

        Parameters
        ----------
        index : int
            The chunk's number.
        etype : str
            The edge type: its triple, or its relation where that is unambiguous.
        src, dst : int64[n]
            Ids of existing nodes, or of new ones where the schema says ``missing: create``.
        weights, features
            As of `write_nodes`.
        ends_known : bool
            That every end was found to exist (`find_nodes`, or counted), so that the service need not look again.

        Raises
        ------
        InvalidRequest
            Naming the first edge whose end is no node, where the edge type says ``missing: reject``.
        """

    async def write_nodes(
        self, index: int, ntype: str, ids: ArrayLike, weights: ArrayLike | None = None, features: Mapping[str, Any] = NO_FEATURES
    ) -> int:
        """Write nodes of one type; give back how many.

        Parameters
        ----------
        index : int
            The chunk's number.
        ntype : str
            The node type.
        ids : int64[n]
            Not negative. An id that is there already is replaced.
        weights : float32[n], optional
            Finite, not negative; 1 where left out.
        features : mapping
            ``[n, *shape]`` for a dense feature, ``(indptr int64[n + 1], values)`` for a ragged one or bytes; a list of rows
            will do for both. A feature that is left out is zero, or empty.

        Raises
        ------
        InvalidRequest
            With the row and the value that can not be written.
        Conflict
            Where the chunk was registered with other content.
        """

    async def write_rows(self, index: int, rows: Rows, *, ends_known: bool = False) -> meta.Chunk:
        """Write rows that were checked already (`asterism.written`); give back their chunk."""

class AsyncNodePasses(Face[NodePasses]):
    """Every node of a type once an epoch: what ``await graph.node_batches(...)`` gives. Go through it with ``async for``."""

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
    def epoch(self) -> int:
        """The one that is under way, from 0."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where passes were; InvalidRequest where it was of something else, or of another version."""

    async def next_batch(self) -> Batch:
        """The next rows of the epoch; none where it is over."""

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what passes of another number of ranks left of their epoch: of every one's state."""

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in plain values: batches that were given count as visited."""

class AsyncEdgePasses(Face[EdgePasses]):
    """Every edge of a type once an epoch: what ``await graph.edge_batches(...)`` gives. Go through it with ``async for``."""

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
    def epoch(self) -> int:
        """The one that is under way, from 0."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where passes were; InvalidRequest where it was of something else, or of another version."""

    async def next_batch(self) -> Batch:
        """The next rows of the epoch; none where it is over."""

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what passes of another number of ranks left of their epoch: of every one's state."""

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in plain values: batches that were given count as visited."""

class AsyncClusterPasses(Face[ClusterPasses]):
    """Every cluster once an epoch: what ``await graph.cluster_batches(...)`` gives. Go through it with ``async for``."""

    @property
    def version(self) -> int: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def cursor(self) -> EpochCursor: ...
    def __aiter__(self) -> AsyncIterator[ClusterBatch]: ...
    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where passes were; InvalidRequest where it was of something else, or of another version."""

    async def next_batch(self) -> Batch:
        """The next rows of the epoch; none where it is over."""

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what passes of another number of ranks left of their epoch: of every one's state."""

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in plain values: batches that were given count as visited."""

class AsyncPairPasses(Face[PairPasses]):
    """Skip-gram pairs of walks: what ``await graph.walk_pairs(...)`` gives. Go through it with ``async for``."""

    @property
    def seed(self) -> int: ...
    @property
    def version(self) -> int | None: ...
    def __aiter__(self) -> AsyncIterator[PairBatch]: ...
    @property
    def epoch(self) -> int:
        """The one that is under way, from 0."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where passes of the same metapaths was; InvalidRequest where they, or the version, are others."""

    def reshard(self, states: Iterable[Mapping[str, Any]]) -> None:
        """Take this rank's share of what passes of another number of ranks left of their epoch: of every one's state."""

    def state_dict(self) -> dict[str, Any]:
        """Where it is, in plain values: batches that were given count as visited."""

class AsyncPinned(Face[Pinned]):
    """A version that is held while an ``async with`` block runs: what ``graph.pin()`` gives."""

    async def __aenter__(self) -> AsyncGraph: ...
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

class AsyncExplainer(Face[Explainer]):
    """The sampling calls of a graph, each of which tells what it takes: ``await graph.explain.sample_nodes(...)``."""

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Explanation]]: ...
