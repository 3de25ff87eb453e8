"""Subgraphs with a given number of nodes per type and layer, sampled as in HGT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.fanout_sampling import FeatureSelection, requested_features
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import Subgraph
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class HgtCalls(GraphCalls):
    """Calls that sample layers by budgets (HGT)."""

    def sample_hgt(
        self,
        seeds: ArrayLike,
        counts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        among: Names = None,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Sample a given number of nodes per type and layer, with all edges among them (HGT).

        Nodes that many nodes of the sample lead to are preferred. The sample is dense, and has as
        many nodes of a rare type as of a common one.

        Parameters
        ----------
        seeds : array_like of int64, shape (m,)
            Seed nodes. -1 means "no node".
        counts : list of int, or dict of str to list of int
            Nodes to sample per layer: for every node type, or by node type. A type that the dict
            does not name is not sampled. Fewer are sampled if fewer nodes have a budget.
        etypes : str or list of str, optional
            Edge types that pass budgets, in this order. None: all.
        among : str or list of str, optional
            Types of the edges to return. None: ``etypes``.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all seeds by name, or of each seed by type id. Needed only where the edge
            types start at several node types and ids are per type.
        weighted : bool, default True
            Split a node's budget over its edges of one type by weight. False: evenly, as PyG does.
        weight : str, default ""
            Name of the edge weights: a weight table that every one of the edge types has. "": the
            edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`; it applies to the edges that pass budgets
            and to those that are returned.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse. "in" reaches the nodes that send messages to a
            node, as PyG does.
        weights : bool, default False
            Return the edge weights, those that ``weight`` names.
        edge_ids : bool, default True
            Return the edge ids.
        node_features : list of str, or dict of str to list of str, optional
            Node features to return with the sample, in the same request: names by node type, or one
            list of names, of which each node type returns those that it has.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        Subgraph
            Nodes are the seeds in request order, then layer after layer in sampling order.
            ``num_sampled_nodes`` counts the seeds and each layer. Edges are ordered as in
            `induced_subgraph`.

        Raises
        ------
        InvalidRequest
            If ``counts`` is invalid, the nodes of a layer have more edges than can be read, or the
            edges do not fit into one reply.
        NotFound
            If there is no such edge type, node type, weight table or version.

        Notes
        -----
        Hu et al. 2020, *Heterogeneous graph transformer*, WWW, section 3.3; as in PyG's
        ``HGTLoader``. A sampled node adds to each neighbor the edge's share of all its edges of
        that type. The sum over all such edges is the budget of a node that is not yet sampled. Each
        layer is sampled without replacement, by successive draws in proportion to squared budgets,
        independently for each node type.

        Examples
        --------
        >>> batch = graph.sample_hgt(  # doctest: +SKIP
        ...     papers,
        ...     {"paper": [64, 64], "author": [64, 64]},
        ...     ntype="paper",
        ...     direction="in",
        ...     seed=3,
        ... )
        >>> batch.num_sampled_nodes["author"]  # doctest: +SKIP
        (0, 64, 64)
        """
        edge_types = self._session.edge_type_ids(
            self.space, validation.type_names("etypes", etypes)
        )
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            seeds, ntype, edge_types, wire_direction, argument="seeds", version=version
        )
        returned_types = (
            edge_types
            if among is None
            else self._session.edge_type_ids(self.space, validation.type_names("among", among))
        )
        excluded = self._exclusion_sections(
            exclude, reverse_types, [*edge_types, *returned_types], version
        )
        head = graphd_pb.SampleHgtRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            counts=self._layer_counts(counts),
            node_type=node_type,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            want_edge_ids=edge_ids,
            want_weights=weights,
            traversed_edge_types=edge_types,
            edge_types=returned_types,
            node_features=requested_features(self.schema, node_features),
        )
        return self._call("sample_hgt", decoding.hgt_subgraph, head, arrays | excluded)

    def _layer_counts(
        self, counts: Sequence[int] | Mapping[str, Sequence[int]]
    ) -> list[graphd_pb.NodeCounts]:
        """Validate counts and return them by node type and layer."""
        by_type = (
            counts
            if isinstance(counts, Mapping)
            else {node_type.name: counts for node_type in self.schema.node_types}
        )
        lists = [validation.counts("counts", one) for one in by_type.values()]
        if not lists or not lists[0] or len({len(layer_counts) for layer_counts in lists}) > 1:
            raise InvalidRequest(
                f"counts={counts!r}: expected a count for each layer, equally many for each type"
            )
        for name, layer_counts in zip(by_type, lists, strict=True):
            for layer, count in enumerate(layer_counts):
                validation.count(
                    f"counts[{name!r}][{layer}]"
                    if isinstance(counts, Mapping)
                    else f"counts[{layer}]",
                    count,
                )
        ids = [self._session.node_type(self.space, name)[0] for name in by_type]
        return [
            graphd_pb.NodeCounts(type_id=type_id, counts=layer_counts)
            for type_id, layer_counts in zip(ids, lists, strict=True)
        ]
