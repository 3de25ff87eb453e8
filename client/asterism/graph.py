"""The connection to a service and the graphs in its spaces, which hold each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from asterism.calls import feature_columns, validation, writes
from asterism.calls.all_calls import AllCalls
from asterism.calls.explain import Explainer
from asterism.calls.loads import find_nodes
from asterism.calls.pins import DEFAULT_TERM_S, Lease, PinnedVersion
from asterism.calls.query import query
from asterism.calls.string_ids import ids_and_names as written_ids
from asterism.calls.writes import NO_FEATURES, WriteRows
from asterism.catalog_client import CatalogClient, build_space
from asterism.client_state import Session
from asterism.records.catalog import Job, SpaceInfo
from asterism.records.query_result import QueryResult
from asterism.records.samples import Features, FeatureValue
from asterism.records.versions import VersionInfo
from asterism_model import unicode_text
from asterism_model.schema import NodeType
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb

if TYPE_CHECKING:
    from asterism.backup import BackupInfo
    from asterism.objects import LoadedGraph
    from asterism.verification import VerificationReport


@unicode_text.refuse_surrogates
class Graph(AllCalls):
    """The graph in a space: what ``client.graph(name)`` gives.

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
    ) -> None:
        super().__init__(session, space, version=version, lease=lease)
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
        """The same graph, where every call reads this version. It is not held: once it is gone,
        calls are NotFound; see `pin`.
        """
        return Graph(self._session, self.space, self.client, version=self._version(version))

    def pin(
        self,
        version: int | None = None,
        *,
        term_s: float = DEFAULT_TERM_S,
        owner: str | None = None,
    ) -> PinnedVersion[Graph]:
        """Hold a version while a block runs, however many newer ones are published meanwhile.

        The lease on it is renewed by a thread, at a third of its term. Where it could not be, the
        next call says so; none is ever answered from another version. A process that dies loses its
        lease; a forked one reads while its parent holds it.

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
        PinnedVersion
            Enter it: ``with graph.pin() as held``; ``held`` is this graph `at` the version.

        Raises
        ------
        NotFound
            At the block's begin, where there is no such version; in it, where the pin has ended:
            release it, and pin anew.
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
        return PinnedVersion(
            self._session,
            self.space,
            self._with_lease,
            version=self._version(version),
            term_s=term_s,
            owner=owner,
        )

    def _with_lease(self, lease: Lease) -> Graph:
        return Graph(self._session, self.space, self.client, version=lease.pin.version, lease=lease)

    def manifest(self, version: int | None = None) -> VersionInfo:
        """What a version holds of every type, with its digest; None: the current one."""
        return self.client.manifest(self.space, self._version(version))

    @property
    def explain(self) -> Explainer:
        """The sampling calls, each of which tells what it takes:
        ``graph.explain.sample_nodes(...)``.

        The call is made, and gives an `Explanation` instead of its sample: which share of the draws
        falls on each type and part, how many are expected and how many there are, which storaged is
        asked for how much, in how many rounds and bytes."""
        return Explainer(self)

    def query(
        self, statement: str, parameters: Mapping[str, Any] | None = None, *, language: str = "ngql"
    ) -> QueryResult:
        """Run statements about this graph, and give the last one's table: as ``Client.query``, at
        the version that this graph is at.

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
        version: int | None = None,
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
            By name: ``[m, *shape]`` where dense, ``(indptr int64[m + 1], values)`` where ragged or
            bytes.
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
        request = feature_columns.ColumnRequest(
            method="node_features", head=head, section="nodes", owner=owner, names=feature_names
        )
        return feature_columns.read_columns(
            self._session, request, self._ids("nodes", nodes, [type_id], version)
        )

    def edge_features(
        self,
        edge_ids: ArrayLike,
        names: str | Iterable[str],
        etype: str,
        *,
        version: int | None = None,
    ) -> dict[str, FeatureValue]:
        """Feature columns of edges of one type, by edge id; as `node_features` otherwise."""
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
        """Add nodes, or replace those that are there; give back the commit number.

        Durable on return, visible with the next build. Arguments as of ``Load.write_nodes``.
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
        """Add edges (``edges: multi``), or replace those between the same nodes (``edges:
        unique``); give back the commit number.

        Raises
        ------
        InvalidRequest
            Where an end is not a node, unless the edge type says ``missing: create``.
        """
        return self._write(
            "upsert_edges",
            writes.edge_upserts(
                self._session, self.space, etype, src, dst, weights, features or NO_FEATURES
            ),
        )

    def delete_nodes(self, ids: ArrayLike, ntype: str) -> int:
        """Delete nodes, and every edge at them; give back the commit number."""
        return self._write(
            "delete_nodes", writes.node_deletes(self._session, self.space, ntype, ids)
        )

    def delete_edges(
        self, src: ArrayLike, dst: ArrayLike, etype: str, edge_ids: ArrayLike | None = None
    ) -> int:
        """Delete edges by (src, dst, edge id), or every one between two nodes; give back the commit
        number.
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
        """bool[n]: which ids were committed as nodes of a type, published or not."""
        type_id, _ = self._session.node_type(self.space, ntype)
        return find_nodes(
            self._session, self.space, type_id, written_ids("ids", ids, self.schema)[0]
        )

    def build(self, wait: bool = True, *, timeout_s: float = 3600.0) -> Job:
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
        if not wait:
            return self.client.submit_job(self.space)
        return build_space(self.client, self.space, timeout_s=timeout_s)

    def _feature_owner(self, names: list[str]) -> int:
        """The one node type that has all these features."""
        types = self.schema.node_types
        owners = [i for i, node_type in enumerate(types) if _has_features(node_type, names)]
        if len(owners) != 1:
            reason = (
                f"{', '.join(types[i].name for i in owners)} have them"
                if owners
                else "no node type has them"
            )
            raise InvalidRequest(
                f"features {names}: {reason}; say ntype, one of {', '.join(t.name for t in types)}"
            )
        return owners[0]


@unicode_text.refuse_surrogates
class Client(CatalogClient):
    """A connection to a service: what ``asterism.connect`` and ``asterism.open`` give.

    Safe for threads; it may cross a fork, or be pickled into another process, where an embedded one
    reads. Every call takes at most ``timeout_s`` seconds, retries included.

    Parameters
    ----------
    transport : ClientTransport
        Who carries the calls.
    timeout_s : float
        Of every call, in seconds.
    on_close : callable, optional
        Run by `close`, after the transport is closed.
    waits : Waiter
        How its calls wait, where they do not wait for an answer.

    Examples
    --------
    >>> with asterism.connect("localhost:9669") as client:  # doctest: +SKIP
    ...     schema = {"nodes": {"paper": {}}, "edges": {"paper:cites:paper": {}}}
    ...     client.create_space("papers", schema)
    ...     graph = client.graph("papers")
    """

    def graph(self, name: str) -> Graph:
        """The graph in a space: sampling, reading, small writes. The space is looked for at
        once.
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
        """Run statements in the style of nGQL, and give the last one's table;
        ``docs/statements.md`` has them all.

        Parameters
        ----------
        statement : str
            One, or several with ``;`` between.
        parameters : mapping, optional
            What the text calls ``$name``: numbers, texts, and arrays of them.
        space : str, optional
            Where they begin; None: they say so themselves (``USE``). ``Result.space`` is where they
            end.
        language : {"ngql", "euler"}
            ``"euler"``: Euler's GQL.

        Raises
        ------
        InvalidRequest
            Where it is none: the message shows the line with a caret, ``error.place`` has what was
            expected, and whether it is cut short.

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
        """Hold a version's draws against its weights; ``report.passed`` says whether they follow
        them.

        Arguments, law and errors as of `asterism.verification.verify`.
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
        """Keep a version of a space at an address, written by the storageds; as
        `asterism.backup.backup`. Needs fsspec.
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
        """Make a space of a backup, with the same version, digest and draws; as
        `asterism.backup.restore`. Needs fsspec.
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
        """Load a graph of PyG, DGL, NetworkX, igraph, SciPy or pandas into a space, made where it
        is not there, and commit it.

        Arguments, answer and errors as of `asterism.objects.load_graph`; ``docs/loading.md`` says
        what becomes of what."""
        from asterism.objects import load_graph

        return load_graph(
            self,
            space,
            graph,
            nodes=nodes,
            ends=ends,
            weights=weights,
            rename=rename,
            only=only,
            fill=fill,
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
