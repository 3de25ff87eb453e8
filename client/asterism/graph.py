"""Client and Graph: the connection to a service, and the graphs in its spaces.

The two refer to each other, and therefore share a module.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from asterism.access_client import AccessClient
from asterism.calls.all_calls import AllCalls
from asterism.calls.annotation_checks import check_argument_types
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.explain import ExplainCalls
from asterism.calls.pins import DEFAULT_TERM_S, Lease, PinnedVersion
from asterism.calls.query import query
from asterism.catalog_client import build_space
from asterism.client_state import Session
from asterism.records.catalog import Job
from asterism.records.query_result import QueryResult
from asterism.records.versions import VersionInfo
from asterism.space_tools import SpaceTools
from asterism_model import unicode_text
from asterism_model.excluded_edges import ExcludedEdges


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
        """Close the client that this graph belongs to; so does the end of a ``with`` block.

        Examples
        --------
        >>> with asterism.open("shop.db").graph("shop") as graph:  # doctest: +SKIP
        ...     graph.count_nodes("item")
        """
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

        Examples
        --------
        >>> graph.at(3).sample_nodes(5, "item").version  # doctest: +SKIP
        3
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

        Examples
        --------
        >>> graph.manifest().digest[:12]  # doctest: +SKIP
        '4aee95af27fc'
        """
        return self.client.manifest(self.space, self._version(version))

    @property
    def explain(self) -> ExplainCalls:
        """Sampling calls that return their cost: ``graph.explain.sample_nodes(...)``.

        The call is executed and returns an `Explanation` instead of its sample: the share of each
        type and partition, the expected and actual numbers of draws, and the requests to each
        storaged with rows, rounds and bytes.
        """
        return ExplainCalls(self)

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

        Examples
        --------
        >>> graph.build().version  # doctest: +SKIP
        4
        """
        if not wait:
            return self.client.submit_job(self.space)
        return build_space(self.client, self.space, timeout_s=timeout_s)


@unicode_text.refuse_surrogates
@check_argument_types
class Client(SpaceTools, AccessClient):
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

        Examples
        --------
        >>> client.graph("shop").sample_nodes(5, "item").nodes  # doctest: +SKIP
        array([17,  4, 17,  9, 30])
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
