"""Client and Graph: the connection to a service, and the graphs in its spaces.

The two refer to each other, and therefore share a module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import feature_columns, validation, writes
from asterism.calls.all_calls import AllCalls
from asterism.calls.argument_types import check_argument_types
from asterism.calls.base import CandidateTypes
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.explain import Explainer
from asterism.calls.loads import find_nodes
from asterism.calls.pins import DEFAULT_TERM_S, Lease, PinnedVersion
from asterism.calls.query import query
from asterism.calls.string_ids import as_string_array
from asterism.calls.string_ids import ids_and_names as written_ids
from asterism.calls.writes import NO_FEATURES, WriteRows
from asterism.catalog_client import CatalogClient, build_space
from asterism.client_state import Session
from asterism.records.catalog import Job, SpaceInfo
from asterism.records.query_result import QueryResult
from asterism.records.samples import Features, FeatureValue, Ids
from asterism.records.versions import VersionInfo
from asterism_model import unicode_text
from asterism_model.excluded_edges import ExcludedEdges
from asterism_model.schema import NodeType
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import graphd_pb2 as graphd_pb

if TYPE_CHECKING:
    from asterism.backup import BackupInfo
    from asterism.objects import LoadedGraph
    from asterism.verification import VerificationReport


@unicode_text.refuse_surrogates
@check_argument_types
class Graph(AllCalls):
    """Graph in one graph space, returned by ``client.graph(name)``.

    Reads and samples see published versions; writes become visible with the next build.

    Examples
    --------
    >>> graph = asterism.connect("localhost:9669", space="papers")  # doctest: +SKIP
    >>> graph.upsert_nodes([0, 1, 2], "paper")  # doctest: +SKIP
    >>> graph.upsert_edges([0, 1], [1, 2], "cites")  # doctest: +SKIP
    >>> graph.build()  # doctest: +SKIP
    >>> graph.sample_neighbors([0, 1], "cites", 5).nodes  # doctest: +SKIP
    """

    def __init__(
        self,
        session: Session,
        space: str,
        client: Client,
        *,
        version: int | None = None,
        lease: Lease | None = None,
        excluded: ExcludedEdges | None = None,
    ) -> None:
        super().__init__(session, space, version=version, lease=lease, excluded=excluded)
        self.client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the client that this graph belongs to; so does the end of a ``with`` block."""
        self.client.close()

    # -- versions ----------------------------------------------------------------------------------

    def at(self, version: int) -> Graph:
        """Return the same graph with every call reading one version.

        The version is not held: once it is removed, calls raise NotFound. See `pin`.

        Parameters
        ----------
        version : int
            Published version.

        Returns
        -------
        Graph
            Graph at the version.

        Raises
        ------
        InvalidRequest
            If this graph is already at another version.
        """
        return Graph(
            self._session,
            self.space,
            self.client,
            version=self._version(version),
            excluded=self._excluded,
        )

    def without_edges(
        self,
        exclude: EdgeExclusion,
        *,
        reverse_types: ReverseTypes = None,
        version: int | None = None,
    ) -> Graph:
        """Return the same graph with some edges excluded from every call that follows edges.

        Calls that return edges or nodes as such, such as `sample_edges` and `scan_edges`, and the
        edges that `sample_negatives` leaves out, are those of the whole graph.

        Parameters
        ----------
        exclude : EdgeRows, LinkSeeds, EdgeSample, (src, dst), or dict
            Edges that are as if they did not exist, as in `sample_neighbors`; by edge type if the
            graph has several. The ``exclude`` of a call adds to them.
        reverse_types : dict of str to str, optional
            Reverse of edge types, as in `sample_neighbors`.
        version : int, optional
            Version in which names of nodes are looked up, in a space of string ids. None: the
            version of this graph, or the current one.

        Returns
        -------
        Graph
            Graph without the edges.

        Raises
        ------
        InvalidRequest
            If the edges have no type although the graph has several, or arrays differ in length.

        Examples
        --------
        >>> links = graph.link_seeds(edges, "cites")  # doctest: +SKIP
        >>> graph.without_edges(links).sample_subgraph(  # doctest: +SKIP
        ...     np.unique([links.src, links.dst]), [10, 5], "cites", direction="in"
        ... )
        """
        excluded = self._excluded_edges(exclude, reverse_types, (), version)
        return Graph(
            self._session,
            self.space,
            self.client,
            version=self.version,
            lease=self._lease,
            excluded=excluded,
        )

    def pin(
        self,
        version: int | None = None,
        *,
        term_s: float = DEFAULT_TERM_S,
        owner: str | None = None,
    ) -> PinnedVersion[Graph]:
        """Hold a version while a block runs, even if newer ones are published.

        A thread renews the lease at a third of its term. If renewal fails, the next call raises; no
        call ever reads another version. A process that dies loses its lease. A forked process can
        read while its parent holds the lease.

        Parameters
        ----------
        version : int, optional
            Published version that is kept. None: the current one.
        term_s : float, default 60
            Term of the lease in seconds: the version stays that long without renewal.
        owner : str, optional
            Label of the pin in lists of pins. None: this host and process id.

        Returns
        -------
        PinnedVersion
            Context manager: in ``with graph.pin() as held``, ``held`` is this graph `at` the
            version.

        Raises
        ------
        NotFound
            On entry, if there is no such version. In the block, if the pin has ended: leave the
            block and pin again.
        Stale
            In the block, if the pin could not be renewed for a whole term.
        InvalidRequest
            If the term is out of range.
        Busy
            On entry, if the space has the maximum number of pins.

        Examples
        --------
        >>> with graph.pin() as held:  # doctest: +SKIP
        ...     for epoch in range(10):
        ...         train(held)
        """
        return PinnedVersion(
            self._session,
            self.space,
            self._with_lease,
            version=self._version(version),
            term_s=term_s,
            owner=owner,
        )

    def _with_lease(self, lease: Lease) -> Graph:
        return Graph(
            self._session,
            self.space,
            self.client,
            version=lease.pin.version,
            lease=lease,
            excluded=self._excluded,
        )

    def manifest(self, version: int | None = None) -> VersionInfo:
        """Return the digest of a version and its totals of every type.

        Parameters
        ----------
        version : int, optional
            Version to describe. None: the version of this graph, or the current one.

        Returns
        -------
        VersionInfo
            The version.

        Raises
        ------
        NotFound
            If there is no such version.
        """
        return self.client.manifest(self.space, self._version(version))

    @property
    def explain(self) -> Explainer:
        """Sampling calls that return their cost: ``graph.explain.sample_nodes(...)``.

        The call is executed and returns an `Explanation` instead of its sample: the share of each
        type and partition, the expected and actual numbers of draws, and the requests to each
        storaged with rows, rounds and bytes.
        """
        return Explainer(self)

    def query(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, language: str = "ngql"
    ) -> QueryResult:
        """Run statements on this graph, at its version, and return the last one's table.

        Parameters
        ----------
        statement : str
            One statement, or several separated by ``;``; see `Client.query`.
        parameters : dict of str to value, optional
            Values of ``$name`` in the text: numbers, strings, and arrays of them.
        language : {"ngql", "euler"}, default "ngql"
            Query language; ``"euler"`` is Euler's GQL.

        Returns
        -------
        QueryResult
            Table of the last statement.

        Raises
        ------
        InvalidRequest
            If a statement is invalid, as in `Client.query`.

        Examples
        --------
        >>> graph.query(  # doctest: +SKIP
        ...     "SAMPLE 10 NEIGHBORS FROM $users OVER buys YIELD src, dst, dst.price SEED 7",
        ...     {"users": users},
        ... )
        """
        return query(
            self._session,
            statement,
            parameters,
            space=self.space,
            language=language,
            version=self._version(None),
        )

    # -- reads -------------------------------------------------------------------------------------

    def node_features(
        self,
        nodes: ArrayLike,
        names: str | Iterable[str],
        ntype: str | None = None,
        *,
        strict: bool = False,
        version: int | None = None,
    ) -> dict[str, FeatureValue]:
        """Return feature columns of nodes of one type.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Node ids of one type. -1 and unknown ids have zeros, or empty rows.
        names : str or list of str
            Names of features; ``"weight"`` is the node's weight.
        ntype : str, optional
            Node type. Not needed if only one node type has these features.
        strict : bool, default False
            Raise NotFound for unknown ids, at the cost of another request. -1, "no node", still has
            zeros.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        dict of str to ndarray or (ndarray, ndarray)
            Columns by name: shape (m, *shape) for dense features; ``(indptr, values)`` with
            ``indptr`` int64, shape (m + 1,), for ragged and bytes features.

        Raises
        ------
        InvalidRequest
            If ``ntype`` is needed.
        NotFound
            If there is no such type, feature or version; with ``strict``, if there is no such node.
        """
        feature_names = validation.names(names)
        type_id = (
            self._session.node_type(self.space, ntype)[0]
            if ntype is not None
            else self._feature_owner(feature_names)
        )
        head = graphd_pb.NodeFeaturesRequest(
            space=self.space, version=self._version(version), type_id=type_id, names=feature_names
        )
        owner = self.schema.node_types[type_id]
        ids = self._ids("nodes", nodes, CandidateTypes([type_id]), version)
        if strict:
            head.version = self._require_nodes(nodes, ids, owner.name, type_id, head.version)
        request = feature_columns.ColumnRequest(
            method="node_features", head=head, section="nodes", owner=owner, names=feature_names
        )
        return feature_columns.read_columns(self._session, request, ids)

    def _require_nodes(
        self, nodes: ArrayLike, ids: Ids, ntype: str, type_id: int, version: int
    ) -> int:
        """Raise NotFound for the first node that does not exist; return the version read.

        ``ids`` has -1 both for "no node" and for a string that no node has as its name.
        """
        head = graphd_pb.NodeTypesRequest(space=self.space, version=version, node_type=type_id)
        reply = self._session.read("node_types", head, {"nodes": ids})
        unknown = (reply.array("types", "int32") < 0) & (ids >= 0)
        strings = as_string_array("nodes", nodes)
        if strings is not None:
            unknown |= (ids < 0) & (strings != "")
        if unknown.any():
            position = int(np.argmax(unknown))
            value = ids[position] if strings is None else repr(strings[position])
            raise NotFound(
                f"nodes[{position}]={value}: expected a node of type {ntype!r} in version "
                f"{reply.head.version} ({int(unknown.sum()) - 1} more); leave such nodes out, or "
                "pass strict=False to get zeros"
            )
        return reply.head.version

    def edge_features(
        self,
        edge_ids: ArrayLike,
        names: str | Iterable[str],
        etype: str,
        *,
        version: int | None = None,
    ) -> dict[str, FeatureValue]:
        """Return feature columns of edges of one type by edge id.

        Parameters
        ----------
        edge_ids : array_like of int64, shape (m,)
            Edge ids. -1 and unknown ids have zeros, or empty rows.
        names : str or list of str
            Names of features.
        etype : str
            Edge type.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        dict of str to ndarray or (ndarray, ndarray)
            Columns by name, as in `node_features`.

        Raises
        ------
        NotFound
            If there is no such type, feature or version.
        """
        feature_names = validation.names(names)
        type_id, owner = self._session.edge_type(self.space, etype)
        head = graphd_pb.EdgeFeaturesRequest(
            space=self.space, version=self._version(version), type_id=type_id, names=feature_names
        )
        request = feature_columns.ColumnRequest(
            method="edge_features", head=head, section="eids", owner=owner, names=feature_names
        )
        return feature_columns.read_columns(
            self._session, request, validation.ids("edge_ids", edge_ids, minimum=-1)
        )

    # -- writes ------------------------------------------------------------------------------------

    def upsert_nodes(
        self,
        ids: ArrayLike,
        ntype: str,
        weights: ArrayLike | None = None,
        features: Features | None = None,
    ) -> int:
        """Insert nodes, or replace existing ones.

        The write is durable on return, and visible with the next build.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            Node ids, 0 or more; strings in a space with string ids.
        ntype : str
            Node type.
        weights : array_like of float32, shape (n,), optional
            Finite weights, 0 or more. None: 1.
        features : dict of str to array_like, optional
            Dense features as ``[n, *shape]``; ragged and bytes features as ``(indptr, values)``, or
            as a list of rows. A feature that is left out is zero or empty.

        Returns
        -------
        int
            Commit number.

        Raises
        ------
        InvalidRequest
            If a value cannot be written; the message names the row and the value.
        """
        return self._write(
            "upsert_nodes",
            writes.node_upserts(
                self._session, self.space, ntype, ids, weights, features or NO_FEATURES
            ),
        )

    def upsert_edges(
        self,
        src: ArrayLike,
        dst: ArrayLike,
        etype: str,
        weights: ArrayLike | None = None,
        features: Features | None = None,
    ) -> int:
        """Insert edges, or replace those between the same nodes.

        With ``edges: multi`` edges are added; with ``edges: unique`` an edge between the same nodes
        is replaced. The write is durable on return, and visible with the next build.

        Parameters
        ----------
        src, dst : array_like of int64, shape (n,)
            Ids of the end nodes; strings in a space with string ids.
        etype : str
            Edge type.
        weights : array_like of float32, shape (n,), optional
            Finite weights, 0 or more. None: 1.
        features : dict of str to array_like, optional
            Features, as in `upsert_nodes`.

        Returns
        -------
        int
            Commit number.

        Raises
        ------
        InvalidRequest
            If an end is not a node, unless the edge type says ``missing: create``; or if a value
            cannot be written.
        Unavailable
            If there was no reply; edges may have been written all the same.
        """
        return self._write(
            "upsert_edges",
            writes.edge_upserts(
                self._session, self.space, etype, src, dst, weights, features or NO_FEATURES
            ),
        )

    def delete_nodes(self, ids: ArrayLike, ntype: str) -> int:
        """Delete nodes, and every edge that has one of them as an end.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            Node ids.
        ntype : str
            Node type.

        Returns
        -------
        int
            Commit number.
        """
        return self._write(
            "delete_nodes", writes.node_deletes(self._session, self.space, ntype, ids)
        )

    def delete_edges(
        self, src: ArrayLike, dst: ArrayLike, etype: str, edge_ids: ArrayLike | None = None
    ) -> int:
        """Delete edges by id, or all edges between pairs of nodes.

        Parameters
        ----------
        src, dst : array_like of int64, shape (n,)
            Ends of the edges.
        etype : str
            Edge type.
        edge_ids : array_like of int64, shape (n,), optional
            Edge ids. None, or -1 in a row: every edge between the two nodes.

        Returns
        -------
        int
            Commit number.
        """
        return self._write(
            "delete_edges",
            writes.edge_deletes(self._session, self.space, etype, src, dst, edge_ids),
        )

    def _write(self, source: str, rows: WriteRows) -> int:
        if rows.is_small:
            return writes.write_small(self._session, self.space, rows)
        load = self.client.begin_load(self.space, source=source)
        try:
            load.write_rows(0, rows)
            return load.commit()
        except BaseException:
            load.abandon()
            raise

    def find_nodes(self, ids: ArrayLike, ntype: str) -> NDArray[np.bool_]:
        """Return which nodes of a type are committed, whether published or not.

        Parameters
        ----------
        ids : array_like of int64, shape (n,)
            Node ids.
        ntype : str
            Node type.

        Returns
        -------
        ndarray of bool, shape (n,)
            True where the node exists.
        """
        type_id, _ = self._session.node_type(self.space, ntype)
        return find_nodes(
            self._session, self.space, type_id, written_ids("ids", ids, self.schema)[0]
        )

    def build(self, wait: bool = True, *, timeout_s: float = 3600.0) -> Job:
        """Build the committed writes and publish them as the next version.

        Parameters
        ----------
        wait : bool, default True
            Wait until the version is published. False: return the job at once.
        timeout_s : float, default 3600
            Maximum wait in seconds.

        Returns
        -------
        Job
            The job.

        Raises
        ------
        NotReady
            If the build fails or is stopped, with the cause in the message; or if nothing is
            committed to build.
        Deadline
            If the build has not ended in time; it keeps running.
        """
        if not wait:
            return self.client.submit_job(self.space)
        return build_space(self.client, self.space, timeout_s=timeout_s)

    def _feature_owner(self, names: list[str]) -> int:
        """Return the id of the one node type that has all these features."""
        types = self.schema.node_types
        owners = [i for i, node_type in enumerate(types) if _has_features(node_type, names)]
        if len(owners) != 1:
            found = " and ".join(types[i].name for i in owners) or "none"
            raise InvalidRequest(
                f"names={names}: expected features that one node type has, found {found}; pass "
                f"ntype, one of {', '.join(t.name for t in types)}"
            )
        return owners[0]


@unicode_text.refuse_surrogates
@check_argument_types
class Client(CatalogClient):
    """Connection to a service, returned by ``asterism.connect`` and ``asterism.open``.

    It is thread-safe, survives a fork, and can be pickled into another process; there, an embedded
    one reads. Every call takes at most ``timeout_s`` seconds, retries included.

    Parameters
    ----------
    transport : ClientTransport
        Transport of the calls.
    timeout_s : float, default 30
        Timeout of every call in seconds.
    on_close : callable, optional
        Called by `close`, after the transport is closed.
    waits : Waiter
        Implementation of sleeping and of concurrent calls; threads by default.

    Examples
    --------
    >>> with asterism.connect("localhost:9669") as client:  # doctest: +SKIP
    ...     schema = {"nodes": {"paper": {}}, "edges": {"paper:cites:paper": {}}}
    ...     client.create_space("papers", schema)
    ...     graph = client.graph("papers")
    """

    def graph(self, name: str) -> Graph:
        """Return the graph in a space, for sampling, reads and small writes.

        Parameters
        ----------
        name : str
            Name of the space; it is looked up at once.

        Returns
        -------
        Graph
            Graph at the current version.

        Raises
        ------
        NotFound
            If there is no such space.
        """
        self.session.schema(name)
        return Graph(self.session, name, self)

    def query(
        self,
        statement: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        space: str | None = None,
        language: str = "ngql",
    ) -> QueryResult:
        """Run statements in an nGQL-like language and return the last one's table.

        ``docs/statements.md`` lists all statements.

        Parameters
        ----------
        statement : str
            One statement, or several separated by ``;``.
        parameters : dict of str to value, optional
            Values of ``$name`` in the text: numbers, strings, and arrays of them.
        space : str, optional
            Space in which the statements start. None: they select it with ``USE``.
            `QueryResult.space` is the space in which they end.
        language : {"ngql", "euler"}, default "ngql"
            Query language; ``"euler"`` is Euler's GQL.

        Returns
        -------
        QueryResult
            Table of the last statement.

        Raises
        ------
        InvalidRequest
            If a statement is invalid. The message shows the line with a caret; ``error.place``
            holds what was expected, and whether the text is incomplete.

        Examples
        --------
        >>> client.query(  # doctest: +SKIP
        ...     "USE shop; SAMPLE 100 VERTICES ON item WHERE price > $least YIELD id, price",
        ...     {"least": 3},
        ... )
        """
        return query(self.session, statement, parameters, space=space or "", language=language)

    def verify(
        self,
        space: str,
        *,
        weights: str | Sequence[str] | None = None,
        draws: int = 100_000,
        alpha: float = 1e-3,
        power: float = 0.9,
        buckets: int = 64,
        seed: int | None = None,
        version: int | None = None,
        timeout_s: float = 3600.0,
        on_progress: Callable[[str, int, int | None], None] | None = None,
    ) -> VerificationReport:
        """Test whether a version's samples follow its weights.

        Parameters
        ----------
        space : str
            Name of the space.
        weights : str or sequence of str, optional
            Names of the weights to test: weight tables, and ``"weight"`` for the rows' own, with
            which uniform sampling is tested too. None: all.
        draws : int, default 100000
            Draws of each kind. The smallest detectable bias falls with their square root.
        alpha : float, default 0.001
            Probability of a false alarm in the whole report, for any number of tests (Holm's
            correction).
        power : float, default 0.9
            Power with which a bias of `Finding.detectable` is detected.
        buckets : int, default 64
            Groups of rows of equal mass per type.
        seed : int, optional
            Seed, to repeat a run. None: a random one, which is reported.
        version : int, optional
            Published version. None: the current one. All samples and scans are pinned to it.
        timeout_s : float, default 3600
            Timeout of the whole run in seconds.
        on_progress : callable, optional
            Called with (step, done, total or None).

        Returns
        -------
        VerificationReport
            ``report.passed``, and ``report.failures`` as text. A bias is a finding, not an error.

        Raises
        ------
        NotFound
            If there is no such space, version or weight name, or nothing to sample from.
        Deadline
            If the time is up.
        """
        from asterism.verification import verify

        return verify(
            self,
            space,
            weights=weights,
            draws=draws,
            alpha=alpha,
            power=power,
            buckets=buckets,
            seed=seed,
            version=version,
            timeout_s=timeout_s,
            on_progress=on_progress,
        )

    def backup(
        self,
        space: str,
        address: str | Path,
        *,
        version: int | None = None,
        timeout_s: float = 24 * 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> BackupInfo:
        """Write a backup of a version to an address; the storageds write the files.

        Needs fsspec. See `asterism.backup.backup`.

        Parameters
        ----------
        space : str
            Name of the space.
        address : str or Path
            Folder that this process and every storaged can write to, such as
            ``"s3://bucket/folder"``. The service setting ``allowed_addresses`` must list it.
        version : int, optional
            Version to back up. None: the current one.
        timeout_s : float, default 86400
            Maximum wait in seconds.
        on_progress : callable, optional
            Called with the job at every poll.

        Returns
        -------
        BackupInfo
            The complete backup.

        Raises
        ------
        InvalidRequest
            If the service does not allow the address.
        Conflict
            If the address holds another backup.
        NotReady
            If the job fails or is stopped.
        """
        from asterism.backup import backup

        return backup(
            self, space, address, version=version, timeout_s=timeout_s, on_progress=on_progress
        )

    def restore(
        self,
        address: str | Path,
        name: str | None = None,
        *,
        timeout_s: float = 24 * 3600.0,
        on_progress: Callable[[Job], None] | None = None,
    ) -> SpaceInfo:
        """Create a space from a backup, with the same version, digest and samples.

        Needs fsspec. See `asterism.backup.restore`.

        Parameters
        ----------
        address : str or Path
            Folder of the backup. This process and every storaged must be able to read it, and the
            service setting ``allowed_addresses`` must list it.
        name : str, optional
            Name of the new space. None: the name in the backup.
        timeout_s : float, default 86400
            Maximum wait in seconds.
        on_progress : callable, optional
            Called with the job at every poll.

        Returns
        -------
        SpaceInfo
            The new space.

        Raises
        ------
        InvalidRequest
            If the service does not allow the address.
        NotFound
            If there is no complete backup.
        Conflict
            If a space of this name exists.
        Corrupt
            If a file differs from what was written.
        NotReady
            If the job fails for another reason or is stopped.
        """
        from asterism.backup import restore

        return restore(self, address, name, timeout_s=timeout_s, on_progress=on_progress)

    def load_graph(
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
    ) -> LoadedGraph:
        """Load a graph from another library, or arrays of edges, and commit it.

        The space is created if it does not exist. ``docs/loading.md`` describes the mapping.
        Parameters, result and errors are those of `asterism.objects.load_graph`.

        Parameters
        ----------
        space : str
            Name of the space.
        graph : object
            PyG ``Data`` or ``HeteroData``, ``DGLGraph``, NetworkX or igraph graph, SciPy sparse
            matrix, frame of edges (pandas, Polars, Arrow), array of edges of shape (2, E), or a
            dict of edge types to matrices, frames or arrays.
        nodes : DataFrame, int, or dict of str to DataFrame or int, optional
            Frames of nodes, for frames of edges; numbers of nodes, for arrays of edges.
        ends : (str, str), default ("src", "dst")
            Columns of a frame of edges that hold source and destination.
        weights : str or dict of str to str, optional
            Attribute that holds the weight. None: ``weight`` (PyG: ``edge_weight``).
        rename : dict of str to str, optional
            New names of attributes.
        types : mapping, optional
            New names of node types, and new relations of edge types.
        only : iterable of str, optional
            Attributes to load as features. None: all.
        fill : dict of str to value, optional
            Value for missing values, by attribute. Without it, missing values are rejected.
        time_unit : {"d", "s", "ms", "us", "ns"}, default "us"
            Unit of datetimes, dates and durations, which become int64.
        node_type, relation : str
            Names of the types if the object has none: ``node`` and ``node:edge:node``.
        parts : int, default 8
            Number of partitions of a new space.
        direction : {"out", "in", "both"}, default "both"
            Directions in which a new space keeps edges.
        ids : {"per_type", "string"}, default "per_type"
            Kind of ids of a new space.
        salt : int, default 0
            Salt of the string ids of a new space.
        build : bool, default False
            Build and publish the graph too.

        Returns
        -------
        LoadedGraph
            Counts, names, commit number and version.

        Raises
        ------
        InvalidRequest
            If a value cannot be loaded, or an existing space cannot hold the graph.
        NotFound
            If an attribute or type does not exist in the object.
        """
        from asterism.objects import load_graph

        return load_graph(
            self,
            space,
            graph,
            nodes=nodes,
            ends=ends,
            weights=weights,
            rename=rename,
            types=types,
            only=only,
            fill=fill,
            time_unit=time_unit,
            node_type=node_type,
            relation=relation,
            parts=parts,
            direction=direction,
            ids=ids,
            salt=salt,
            build=build,
        )


def _has_features(node_type: NodeType, names: list[str]) -> bool:
    return set(names) <= {feature.name for feature in node_type.features} | {"weight"}
