"""Batches of whole clusters, epoch after epoch: Cluster-GCN."""

from __future__ import annotations

from asterism.calls.base import GraphCalls, Names
from asterism.calls.clusters import ClusterGrouping, ClusterInput, describe_version
from asterism.calls.epochs import require_shared_seed
from asterism.calls.fanouts import FeatureSelection
from asterism.calls.passes import ClusterPasses


class ClusterBatchCalls(GraphCalls):
    """The part of a graph that is gone through cluster by cluster."""

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
