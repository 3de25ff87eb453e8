"""Calls that iterate over a graph epoch by epoch: nodes, edges, pairs of walks, clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from numpy.typing import ArrayLike

from asterism.calls import validation
from asterism.calls.base import GraphCalls, Names
from asterism.calls.clusters import ClusterGrouping, ClusterInput, describe_version
from asterism.calls.epoch_iterators import ClusterPasses, EdgePasses, NodePasses, PairPasses
from asterism.calls.fanouts import FeatureSelection
from asterism.calls.metapaths import Metapath
from asterism_proto.errors import InvalidRequest

UNSET: Mapping[str, ArrayLike] = MappingProxyType({})


class EpochCalls(GraphCalls):
    """Calls of a graph that return iterators over whole epochs."""

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
    ) -> NodePasses:
        """Every node of a type once an epoch, in shuffled batches: for training, or for inference
        over all nodes.

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
            Go through it once an epoch; ``state_dict`` and ``load_state_dict`` resume it, and
            ``reshard`` with another ``world``.

        Examples
        --------
        >>> for nodes in graph.node_batches("paper", 1024, seed=1):  # doctest: +SKIP
        ...     infer(graph.sample_subgraph(nodes, [15, 10], "cites"))
        """
        return NodePasses(
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
    ) -> EdgePasses:
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
            Go through it once an epoch; each batch is an `EdgeRows`. ``state_dict``,
            ``load_state_dict`` and ``reshard`` as of `node_batches`.

        Examples
        --------
        >>> for edges in graph.edge_batches(  # doctest: +SKIP
        ...     "cites", 1024, where="year < 2019", seed=1
        ... ):
        ...     train(graph.link_seeds(edges, "cites", mode="triplet", amount=5))
        """
        return EdgePasses(
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
    ) -> PairPasses:
        """Skip-gram pairs of walks along metapaths, from every node of their start types once an
        epoch.

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
            Pairs of types to leave out, the centre's first: ``w2q;q2t`` (``excluded_train_pair``).
            Pairs of types that are not on a metapath are left out too.
        starts : dict of node type to int64[m]
            Walks start at these instead of at every node of the type (``train_start_nodes``); as
            `node_batches` has ``among``.
        seed : int, optional
            Of the order of starts, of walks, of pairs and of negatives. Several ranks must give the
            same.
        rank, world, version
            As of `node_batches`.

        Returns
        -------
        PairPasses
            Go through it once an epoch; each `PairBatch` is shuffled. ``state_dict`` as of
            `node_batches`.

        Examples
        --------
        >>> passes = graph.walk_pairs(  # doctest: +SKIP
        ...     "u2click2i-i2click2u;i2click2u-u2click2i", 24, walks=10, window=3, negatives=5
        ... )
        >>> for batch in passes:  # doctest: +SKIP
        ...     train(batch.pairs, batch.negatives)
        """
        return PairPasses(
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
    ) -> ClusterPasses:
        """Every cluster once an epoch, q of them at a time, each batch with all edges among its
        nodes (Cluster-GCN).

        Parameters
        ----------
        clusters : str, Path, Clusters, or dict of node type to (nodes, clusters)
            Which nodes belong together: a folder that ``asterism export assignment`` wrote, by
            METIS or streaming; arrays, where nodes that are not named are in no batch; or
            `asterism.calls.clusters.Clusters`, which a feature may number too.
        q : int
            Clusters of a batch; the last one of an epoch may have fewer.
        etypes, weight, where, direction, weights, edge_ids, node_features
            As of `induced_subgraph`.
        seed, rank, world, version
            As of `node_batches`; clusters are shared over ranks, not nodes.

        Returns
        -------
        ClusterPasses
            Go through it once an epoch; each batch is a `ClusterBatch`. ``state_dict``,
            ``load_state_dict`` and ``reshard`` as of `node_batches`.

        Raises
        ------
        InvalidRequest
            Where the clusters are of another version than is read; of a batch: where its edges do
            not fit into one reply.

        Notes
        -----
        Chiang et al. 2019, *Cluster-GCN: an efficient algorithm for training deep and large graph
        convolutional networks*, KDD, section 3.2: with stochastic multiple partitions, so that
        edges between the clusters of a batch are there, and the clusters that meet are others each
        epoch.

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
        return ClusterPasses(
            self._graph(),
            grouping,
            read_version,
            batch_size=q,
            seed=require_shared_seed(seed, world),
            rank=rank,
            world=world,
        )


def require_shared_seed(seed: int | None, world: int) -> int:
    """The seed of an order, which ranks must have in common."""
    if seed is None and world > 1:
        raise InvalidRequest(
            f"a share of {world} without a seed: each would visit nodes in an order of its "
            "own; give all ranks the same seed"
        )
    return validation.seed(seed)
