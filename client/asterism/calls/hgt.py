"""Subgraphs of as many nodes of each type as asked for, layer by layer: the sampling of
heterogeneous graph transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.fanouts import FeatureSelection, requested_features
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import Subgraph
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class HgtCalls(GraphCalls):
    """The part of a graph that whole layers are drawn from by budgets."""

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
        direction: str = "out",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Seeds, nodes drawn layer by layer, so many of each type, and all edges among them (HGT).

        Nodes that many of the sample lead to are drawn first: the sample is dense, and has as many
        nodes of a rare type as of a common one.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        counts : list of int, or dict of node type to list of int
            Nodes to draw in each layer: of each node type, or as a dict says; of types that it does
            not name none are. Fewer are drawn where fewer were given anything.
        etypes : str or list of str, optional
            The types of edges along which nodes give, in the order in which they are; None: all.
        among : str or list of str, optional
            The types of the edges among the nodes that are given; None: those that are followed.
        ntype, node_features
            As of `sample_subgraph`.
        weighted, weight
            Whether a node gives along its edges of one type by their weights, and which; otherwise
            to all alike, as PyG does.
        where : str
            As of `sample_neighbors`, of the edges that are followed and of those that are given.
        direction : {"out", "in"}
            Along the edges, or against them: "in" meets those whose messages a node gets, as PyG's.
        weights, edge_ids : bool
            Whether to give these too.

        Returns
        -------
        Subgraph
            Nodes are seeds in request order, then layer after layer in the order of the draws;
            ``num_sampled_nodes`` has the seeds, and each layer. Edges as of `induced_subgraph`.

        Raises
        ------
        InvalidRequest
            Where counts are none, the nodes of a layer have more edges than can be read, or the
            edges do not fit into one reply.

        Notes
        -----
        Hu et al. 2020, *Heterogeneous graph transformer*, WWW, section 3.3; as PyG's ``HGTLoader``.
        A node that is taken gives each of its edges of one type the share that the edge has of all
        of them; a node that is not taken has the sum of what edges to it were given, its budget. A
        layer is drawn without replacement, by successive draws in proportion to squared budgets,
        each node type by itself.

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
            edge_types=edge_types
            if among is None
            else self._session.edge_type_ids(self.space, validation.type_names("among", among)),
            node_features=requested_features(self.schema, node_features),
        )
        return self._call("sample_hgt", decoding.hgt_subgraph, head, arrays)

    def _layer_counts(
        self, counts: Sequence[int] | Mapping[str, Sequence[int]]
    ) -> list[graphd_pb.NodeCounts]:
        """Counts by node type and layer, checked."""
        by_type = (
            counts
            if isinstance(counts, Mapping)
            else {node_type.name: counts for node_type in self.schema.node_types}
        )
        lists = [list(layer_counts) for layer_counts in by_type.values()]
        if not lists or not lists[0] or len({len(layer_counts) for layer_counts in lists}) > 1:
            raise InvalidRequest(
                f"counts {counts!r}: expected one count per layer, as many for every node type"
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
