"""A connection to an Asterism service, with what is built upon graphs: verification, backups and
graphs of other libraries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asterism.graph import GraphClient
from asterism.records.catalog import Job, SpaceInfo
from asterism_model import unicode_text

if TYPE_CHECKING:
    from asterism.backup import BackupInfo
    from asterism.objects import LoadedGraph
    from asterism.verification import VerificationReport


@unicode_text.refuse_surrogates
class Client(GraphClient):
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
