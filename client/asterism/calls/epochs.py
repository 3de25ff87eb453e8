"""Calls that iterate over a graph in epochs: nodes, edges, pairs from walks, clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.base import GraphCalls, Names
from asterism.calls.clusters import ClusterGrouping, ClusterInput, describe_version
from asterism.calls.epoch_iterators import ClusterEpochs, EdgeEpochs, NodeEpochs, PairEpochs
from asterism.calls.fanout_sampling import FeatureSelection
from asterism.calls.metapath_notation import Metapath
from asterism_proto.errors import InvalidRequest

UNSET: Mapping[str, ArrayLike] = MappingProxyType({})


class EpochCalls(GraphCalls):
    """Calls that return iterators over whole epochs."""

    def node_batches(
        self,
        ntype: str,
        batch_size: int,
        *,
        among: ArrayLike | None = None,
        seed: int | None = None,
        rank: int = 0,
        world: int = 1,
        version: int | None = None,
    ) -> NodeEpochs:
        """Iterate over all nodes of a type once per epoch, in shuffled batches.

        Use it for training, or for inference over all nodes.

        Parameters
        ----------
        ntype : str
            Node type.
        batch_size : int
            Nodes per batch; the last batch of an epoch may be smaller.
        among : array_like of int64, shape (m,), optional
            Iterate over these nodes instead of all nodes of the type. All ranks pass the same nodes
            in the same order.
        seed : int, optional
            Seed of the order. Required, and the same on all ranks, if ``world`` is above 1. None:
            random.
        rank, world : int, default 0 and 1
            This trainer's rank and the number of trainers. Together they visit every row once.
        version : int, optional
            Version to read. None: the current one; all epochs then read that version. Pin it while
            the epochs last.

        Returns
        -------
        NodeEpochs
            Iterate over it once per epoch. ``state_dict`` and ``load_state_dict`` resume it;
            ``reshard`` resumes it with another ``world``.

        Raises
        ------
        InvalidRequest
            If ``world`` is above 1 and ``seed`` is None, or an argument is out of range.
        NotFound
            If there is no such node type or version.

        Examples
        --------
        >>> for nodes in graph.node_batches("paper", 1024, seed=1):  # doctest: +SKIP
        ...     infer(graph.sample_subgraph(nodes, [15, 10], "cites"))
        """
        return NodeEpochs(
            self._graph(),
            ntype,
            batch_size=batch_size,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
            version=version,
            among=among,
        )

    def edge_batches(
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
    ) -> EdgeEpochs:
        """Iterate over all edges of a type once per epoch, in shuffled batches.

        Use it to train link prediction.

        Parameters
        ----------
        etype : str
            Edge type.
        batch_size : int
            Edges per batch; the last batch of an epoch may be smaller.
        weight : str, default ""
            Name of the weights to return. "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`, such as those of a training split. "": all
            edges.
        seed : int, optional
            Seed of the order. Required, and the same on all ranks, if ``world`` is above 1. None:
            random.
        rank, world : int, default 0 and 1
            This trainer's rank and the number of trainers. Together they visit every row once.
        version : int, optional
            Version to read. None: the current one; all epochs then read that version. Pin it while
            the epochs last.

        Returns
        -------
        EdgeEpochs
            Iterate over it once per epoch; each batch is an `EdgeRows`. ``state_dict``,
            ``load_state_dict`` and ``reshard`` resume it.

        Raises
        ------
        InvalidRequest
            If ``world`` is above 1 and ``seed`` is None, or an argument is invalid.
        NotFound
            If there is no such edge type or version.

        Examples
        --------
        >>> for edges in graph.edge_batches(  # doctest: +SKIP
        ...     "cites", 1024, where="year < 2019", seed=1
        ... ):
        ...     train(graph.link_seeds(edges, "cites", mode="triplet", amount=5))
        """
        return EdgeEpochs(
            self._graph(),
            etype,
            batch_size=batch_size,
            weight=weight,
            where=where,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
            version=version,
        )

    def walk_pairs(
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
    ) -> PairEpochs:
        """Iterate over skip-gram pairs of walks along metapaths, once per epoch.

        Every node of the metapaths' start types starts walks once per epoch.

        Parameters
        ----------
        metapaths : str or list of Metapath
            Metapaths in the notation of `metapaths`. They take turns, one batch each.
        walk_length : int
            Steps per walk (PGLBox: ``walk_len``).
        walks : int, default 1
            Walks per start node (``walk_times``).
        window : int, default 1
            Positions before and after a node that form pairs with it (``win_size``).
        batch_size : int, default 1024
            Start nodes per batch.
        first_step : {"independent", "distinct"}, default "distinct"
            First step of a node's walks, as in `random_walk`.
        weighted : bool, default True
            Choose edges in proportion to their weights (``weighted_sample``). False: uniformly.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `random_walk`.
        negatives : int, default 0
            Negative nodes per pair, sampled by weight from the type of the pair's second node
            (``neg_num``).
        excluded : str, default ""
            Pairs of node types to leave out, the center's type first: ``w2q;q2t``
            (``excluded_train_pair``). Pairs of types that are not on a metapath are always left
            out.
        starts : dict of str to array_like of int64, shape (m,), optional
            Start nodes by node type, instead of all nodes of the type (``train_start_nodes``); the
            same on all ranks, like ``among`` of `node_batches`.
        seed : int, optional
            Seed of the order of start nodes, of walks, pairs and negatives. Required, and the same
            on all ranks, if ``world`` is above 1. None: random.
        rank, world : int, default 0 and 1
            This trainer's rank and the number of trainers. Together they visit every row once.
        version : int, optional
            Version to read. None: the current one; all epochs then read that version. Pin it while
            the epochs last.

        Returns
        -------
        PairEpochs
            Iterate over it once per epoch; each `PairBatch` is shuffled. ``state_dict``,
            ``load_state_dict`` and ``reshard`` resume it.

        Raises
        ------
        InvalidRequest
            If a metapath is invalid, ``world`` is above 1 and ``seed`` is None, or an argument is
            out of range.
        NotFound
            If there is no such version.

        Examples
        --------
        >>> passes = graph.walk_pairs(  # doctest: +SKIP
        ...     "u2click2i-i2click2u;i2click2u-u2click2i", 24, walks=10, window=3, negatives=5
        ... )
        >>> for batch in passes:  # doctest: +SKIP
        ...     train(batch.pairs, batch.negatives)
        """
        return PairEpochs(
            self._graph(),
            self._graph().metapaths(metapaths) if isinstance(metapaths, str) else metapaths,
            walk_length=walk_length,
            walks=walks,
            window=window,
            batch_size=batch_size,
            first_step=first_step,
            weighted=weighted,
            weight=weight,
            where=where,
            negatives=negatives,
            excluded=excluded,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
            version=version,
            starts=starts,
        )

    def cluster_batches(
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
    ) -> ClusterEpochs:
        """Iterate over all clusters once per epoch, with the subgraph of q clusters per batch.

        Each batch has all edges among its nodes (Cluster-GCN).

        Parameters
        ----------
        clusters : str, Path, Clusters, or dict of str to (nodes, clusters)
            Assignment of nodes to clusters: a folder that ``asterism export assignment`` wrote
            (METIS or streaming); arrays by node type, where nodes that are not listed appear in no
            batch; or `asterism.calls.clusters.Clusters`, which can also come from a feature.
        q : int
            Clusters per batch; the last batch of an epoch may have fewer.
        etypes : str or list of str, optional
            Types of the edges to return. None: all.
        weight : str, default ""
            Name of the weights to return. "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_edges`.
        direction : {"out", "in"}, default "out"
            Read edges at their sources, or at their destinations, as in `induced_subgraph`.
        weights : bool, default False
            Return the edge weights.
        edge_ids : bool, default True
            Return the edge ids.
        node_features : list of str, or dict of str to list of str, optional
            Node features to return with the sample, in the same request: names by node type, or one
            list of names, of which each node type returns those that it has.
        seed : int, optional
            Seed of the order. Required, and the same on all ranks, if ``world`` is above 1. None:
            random.
        rank, world : int, default 0 and 1
            This trainer's rank and the number of trainers. Clusters are split over ranks, not
            nodes.
        version : int, optional
            Version to read. None: the current one; all epochs then read that version. Pin it while
            the epochs last.

        Returns
        -------
        ClusterEpochs
            Iterate over it once per epoch; each batch is a `ClusterBatch`. ``state_dict``,
            ``load_state_dict`` and ``reshard`` resume it.

        Raises
        ------
        InvalidRequest
            If the clusters belong to another version; during iteration, if the edges of a batch do
            not fit into one reply.

        Notes
        -----
        Chiang et al. 2019, *Cluster-GCN: an efficient algorithm for training deep and large graph
        convolutional networks*, KDD, section 3.2, with stochastic multiple partitions: edges
        between the clusters of a batch are included, and each epoch combines different clusters.

        Examples
        --------
        >>> for batch in held.cluster_batches(  # doctest: +SKIP
        ...     "clusters", 20, "cites", node_features=["vec"], seed=1
        ... ):
        ...     step(batch.subgraph)
        """
        info = describe_version(self._graph(), version)
        subgraph_options = {
            "etypes": etypes,
            "weight": weight,
            "where": where,
            "direction": direction,
            "weights": weights,
            "edge_ids": edge_ids,
            "node_features": node_features,
        }
        grouping = ClusterGrouping.from_input(self._graph(), clusters, subgraph_options, info)
        read_version = self._version(version) or info.version
        return ClusterEpochs(
            self._graph(),
            grouping,
            read_version,
            batch_size=q,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
        )


def require_shared_seed(seed: int | None, world: int) -> int:
    """Return the seed of an order; several ranks must pass the same one."""
    if seed is None and world > 1:
        raise InvalidRequest(
            f"seed=None with world={world}: expected a seed, so that all ranks visit rows in one "
            "order; pass the same seed on all ranks"
        )
    return validation.seed(seed)
