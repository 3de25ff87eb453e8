"""Seeds for link prediction: positive edges with negative ones."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from asterism import permutations
from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.records.samples import EdgeRows, EdgeSample, Ids, LinkSeeds
from asterism_proto.errors import InvalidRequest

_MODES = ("binary", "triplet")


class LinkCalls(GraphCalls):
    """Calls that build seeds for link prediction."""

    def link_seeds(
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
        """Combine positive edges with sampled negatives, to train link prediction.

        Parameters
        ----------
        edges : EdgeRows, EdgeSample, or array_like of int64, shape (m, 2)
            Positive edges, from `edges_at`, `edge_batches` or `sample_edges`, or pairs of ids
            (source, destination).
        etype : str
            Their edge type. Negatives join nodes of the same types.
        mode : {"binary", "triplet"}, default "binary"
            "binary": negative pairs with sources of their own, and labels. "triplet": for each
            positive, negative destinations of its source.
        amount : float, default 1
            Negatives per positive. Binary: m * amount pairs, rounded up. Triplet: an integer.
        weight : str, optional
            Node weights by which negative destinations are sampled: a weight table, or "" for the
            nodes' own weights. None: uniformly. For degree^0.75 (Mikolov et al. 2013) declare a
            table ``pow(in_degree, 0.75)``; builds count the edges (docs/loading.md).
        src_weight : str, optional
            Node weights by which sources of negative pairs are sampled; only for "binary". None:
            uniformly.
        exclude : bool, default True
            Leave out every destination that an edge of this type leads to from the source in the
            version read. False: a negative may be an edge (as in PyG), but the negative of a
            triplet is never its own positive.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to sample negatives from. None: the version of ``edges`` if they are a record,
            otherwise the version of this graph, or the current one.

        Returns
        -------
        LinkSeeds
            Positives and negatives, all from one version.

        Raises
        ------
        InvalidRequest
            If ``mode`` or ``amount`` is invalid, or ``edges`` are not pairs, or are of another edge
            type or version.

        Notes
        -----
        The shapes are those of PyG's ``NegativeSampling``. The source u of a negative is sampled by
        the sources' weights (binary) or given (triplet). Its destination is v with probability w_v
        / (the weight of all destinations that are not left out for u). Draws are independent, and
        keyed by their position in the batch. If everything is left out for u there is no negative:
        a binary pair is dropped, so that there are fewer; a triplet has -1.

        Examples
        --------
        >>> for edges in graph.edge_batches("cites", 512, seed=1):  # doctest: +SKIP
        ...     links = graph.link_seeds(edges, "cites", amount=2)
        ...     nodes = np.unique(np.concatenate([links.src, links.dst]))
        ...     rest = graph.without_edges({"cites": (edges.src, edges.dst)})
        ...     batch = rest.sample_subgraph(nodes, [10, 5], "cites", direction="in")
        """
        _check(mode, amount, src_weight)
        _, edge_type = self._session.edge_type(self.space, etype)
        src, dst, eids, version = self._positives(edges, etype, version)
        resolved_seed = validation.seed(seed)
        keys = [permutations.key_of(resolved_seed, permutations.NEGATIVE, end) for end in (0, 1)]
        heads = src
        if mode == "binary":
            heads = (
                self._graph()
                .sample_nodes(
                    math.ceil(len(src) * amount),
                    edge_type.src_type,
                    seed=keys[0],
                    version=version,
                    weighted=src_weight is not None,
                    weight=src_weight or "",
                )
                .nodes
            )
        negatives = (
            self._graph()
            .sample_negatives(
                heads if mode == "binary" else np.stack([src, dst], axis=1),
                1 if mode == "binary" else int(amount),
                edge_type.dst_type,
                weighted=weight is not None,
                weight=weight or "",
                exclude_edges=edge_type.name if exclude else None,
                seed=keys[1],
                version=version,
            )
            .nodes
        )
        valid = np.flatnonzero(negatives[:, 0] >= 0) if mode == "binary" else np.zeros(0, np.int64)
        return LinkSeeds(
            src=np.concatenate([src, heads[valid]]),
            dst=np.concatenate([dst, negatives[valid].reshape(-1)]),
            labels=np.repeat(np.array([1, 0], np.float32), [len(src), len(valid)])
            if mode == "binary"
            else None,
            negatives=negatives if mode == "triplet" else None,
            positives=len(src),
            edge_ids=eids,
            etype=edge_type.name,
            seed=resolved_seed,
            version=version,
        )

    def _positives(
        self, edges: EdgeRows | EdgeSample | ArrayLike, etype: str, version: int | None
    ) -> tuple[Ids, Ids, Ids | None, int]:
        """Return sources, destinations and ids of the positives, and the version to read."""
        if isinstance(edges, EdgeRows | EdgeSample):
            if version is not None and version != edges.version:
                raise InvalidRequest(
                    f"version={version}: expected {edges.version}, the version of edges; leave "
                    "it out"
                )
            if isinstance(edges, EdgeSample) and len(
                wrong := np.flatnonzero(
                    edges.types != self._session.edge_type(self.space, etype)[0]
                )
            ):
                type_name = self.schema.edge_types[edges.types[wrong[0]]].name
                raise InvalidRequest(
                    f"edges[{wrong[0]}] of type {type_name!r}: expected {etype!r}; pass edges of "
                    "one type at a time"
                )
            return edges.src, edges.dst, edges.edge_ids, edges.version
        pairs = validation.as_array("edges", edges, "ids")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidRequest(f"edges of shape {list(pairs.shape)}: expected pairs, [m, 2]")
        checked = validation.ids("edges", pairs.reshape(-1)).reshape(-1, 2)
        return (
            checked[:, 0].copy(),
            checked[:, 1].copy(),
            None,
            self._edges_at(etype, checked[:0, 0].copy(), "", "", version)[0].version,
        )


def _check(mode: str, amount: float, src_weight: str | None) -> None:
    """Reject invalid combinations of arguments."""
    if mode not in _MODES:
        raise InvalidRequest(f"mode={mode!r}: expected 'binary' or 'triplet'")
    if (
        isinstance(amount, bool)
        or not isinstance(amount, int | float | np.integer | np.floating)
        or not math.isfinite(amount)
        or amount < 0
        or (mode == "triplet" and amount != int(amount))
    ):
        raise InvalidRequest(
            f"amount={amount!r}: expected 0 or more negatives for each positive, and an integer "
            "with mode='triplet'"
        )
    if mode == "triplet" and src_weight is not None:
        raise InvalidRequest(
            f"src_weight={src_weight!r}: expected None with mode='triplet', where negatives have "
            "the sources of the positives; leave it out"
        )
