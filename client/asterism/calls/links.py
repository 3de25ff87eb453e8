"""Link-level seeds: positive edges, and negatives that are no edges."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from asterism import hashing
from asterism.calls import validation
from asterism.calls.base import GraphCalls
from asterism.records.samples import EdgeRows, EdgeSample, Ids, LinkSeeds
from asterism_proto.errors import InvalidRequest

_MODES = ("binary", "triplet")


class LinkCalls(GraphCalls):
    """The part of a graph that link prediction starts from."""

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
        """Positive edges with negatives beside them: what models of links are trained on.

        Parameters
        ----------
        edges : EdgeRows, EdgeSample or int64[m, 2]
            The positives, of `edges_at`, `edge_batches` or `sample_edges`, or pairs of ids (source,
            destination).
        etype : str
            Their edge type: negatives join nodes of the same types.
        mode : {"binary", "triplet"}
            Negative pairs with a source of their own, labelled; or, for each positive, negative
            destinations of its source.
        amount : float
            Negatives for each positive. Binary: m * amount pairs, rounded up. Triplet: a whole
            number.
        weight : str, optional
            Negative destinations in proportion to these weights of nodes: "" are their own,
            otherwise a table's name. None: uniformly. For degree^0.75 (Mikolov et al. 2013) declare
            a table ``pow(in_degree, 0.75)``: builds count edges (docs/loading.md).
        src_weight : str, optional
            The sources of negative pairs likewise; binary alone.
        exclude : bool
            Leave out every destination that an edge of this type leads to from the source, in the
            version that is read. False: a negative may be an edge (PyG), but no triplet's negative
            is its own positive.

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
        The shapes are those of PyG's ``NegativeSampling``. A negative's source u is drawn by the
        sources' weights (binary) or given (triplet); its destination is v with probability w_v /
        (the weight of all destinations that are not left out for u), every draw by itself and keyed
        by its place in the batch. Where everything is left out for u there is no negative: a pair
        is not given, so that there are fewer; a triplet has -1.

        Examples
        --------
        >>> for edges in graph.edge_batches("cites", 512, seed=1):  # doctest: +SKIP
        ...     links = graph.link_seeds(edges, "cites", amount=2, seed=7)
        ...     nodes = np.concatenate([links.src, links.dst])
        ...     batch = graph.sample_subgraph(nodes, [10, 5], "cites")
        """
        _check(mode, amount, src_weight)
        _, edge_type = self._session.edge_type(self.space, etype)
        src, dst, eids, version = self._positives(edges, etype, version)
        resolved_seed = validation.seed(seed)
        keys = [hashing.key_of(resolved_seed, hashing.NEGATIVE, end) for end in (0, 1)]
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
        """Sources, destinations and ids of positives, and the version that negatives are of."""
        if isinstance(edges, EdgeRows | EdgeSample):
            if version is not None and version != edges.version:
                raise InvalidRequest(
                    f"version {version}: the edges are of version {edges.version}; leave it out"
                )
            if isinstance(edges, EdgeSample) and len(
                wrong := np.flatnonzero(
                    edges.types != self._session.edge_type(self.space, etype)[0]
                )
            ):
                type_name = self.schema.edge_types[edges.types[wrong[0]]].name
                raise InvalidRequest(
                    f"edges[{wrong[0]}] is of type {type_name!r}, not {etype!r}; ask for "
                    "those of one type at a time"
                )
            return edges.src, edges.dst, edges.edge_ids, edges.version
        pairs = np.asarray(edges)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidRequest(f"edges has shape {list(pairs.shape)}; expected pairs [m, 2]")
        checked = validation.ids("edges", pairs.reshape(-1)).reshape(-1, 2)
        return (
            checked[:, 0].copy(),
            checked[:, 1].copy(),
            None,
            self._edges_at(etype, checked[:0, 0].copy(), "", "", version)[0].version,
        )


def _check(mode: str, amount: float, src_weight: str | None) -> None:
    """Refuse what no links are made by."""
    if mode not in _MODES:
        raise InvalidRequest(f"mode {mode!r}: expected 'binary' or 'triplet'")
    if (
        isinstance(amount, bool)
        or not math.isfinite(amount)
        or amount < 0
        or (mode == "triplet" and amount != int(amount))
    ):
        raise InvalidRequest(
            f"amount {amount!r}: expected 0 or more negatives for each positive, of triplets "
            "a whole number"
        )
    if mode == "triplet" and src_weight is not None:
        raise InvalidRequest(
            f"src_weight {src_weight!r}: the sources of triplets are those of the positives; "
            "leave it out"
        )
