"""Tools over whole spaces: verification, backups, and graphs of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asterism.catalog_client import CatalogClient
from asterism.records.catalog import Job, SpaceInfo

if TYPE_CHECKING:
    from asterism.backup import BackupInfo
    from asterism.objects import LoadedGraph
    from asterism.verification import VerificationReport


class SpaceTools(CatalogClient):
    """Calls of a client that run a tool over a space; each imports its tool when it is called."""

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

        Examples
        --------
        >>> client.verify("shop", seed=7).passed  # doctest: +SKIP
        True
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

        Examples
        --------
        >>> client.backup("shop", "s3://bucket/backups/shop").bytes  # doctest: +SKIP
        4682579
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

        Examples
        --------
        >>> client.restore("s3://bucket/backups/shop", "yesterday").version  # doctest: +SKIP
        3
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

        Examples
        --------
        >>> client.load_graph("karate", networkx.karate_club_graph(), build=True)  # doctest: +SKIP
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
