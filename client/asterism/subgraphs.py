"""Subgraphs around seeds, numbered as models want them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism import answers, arguments
from asterism.fanouts import Columns, wanted_features
from asterism.reading import Reader
from asterism.records import Subgraph
from asterism.sampling import Names, NodeTypes, direction_of
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as wire


class Subgraphs(Reader):
    """The part of a graph that batches are made of."""

    def sample_subgraph(
        self,
        seeds: ArrayLike,
        fanouts: Sequence[int] | Mapping[str, Sequence[int]],
        etypes: Names = None,
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        replace: bool = False,
        direction: str = "out",
        disjoint: bool = False,
        expand: str = "first",
        weights: bool = False,
        edge_ids: bool = True,
        node_features: Columns = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> Subgraph:
        """Seeds, sampled neighbors of theirs, and theirs, hop by hop, as one subgraph with nodes numbered from 0.

        Parameters
        ----------
        seeds : int64[m]
            Node ids; -1 is no node.
        fanouts : list of int, or dict of edge type to list of int
            Neighbors per node of each hop: of each edge type, or as a dict says; 0 is none, -1 all.
        etypes : str or list of str, optional
            Edge types to follow, in the order in which they are; None: those of ``fanouts`` where it is a dict, else all.
        ntype : str or int[m], optional
            The type of the seeds, or of each. It may be left out where all edge types start at the same one.
        weighted, weight, where, replace
            As of `sample_neighbors`; each edge type is drawn from by itself.
        direction : {"out", "in"}
            Along the edges, or against them: "in" gives each node's messages, as PyG and DGL sample.
        disjoint : bool
            A tree of its own for every seed: a node that several seeds reach is there several times (`Subgraph.batch`).
        expand : {"first", "every"}
            Whether a node's neighbors are drawn in the hop after the one that met it (PyG), or in every hop from then on
            (DGL's blocks).
        weights, edge_ids : bool
            Whether to give these too.
        node_features : list of str, or dict of node type to list of str
            Features of the nodes to bring along, as of `sample_fanout`: a row for each of ``nodes``.

        Returns
        -------
        Subgraph

        Notes
        -----
        Nodes are numbered per type: seeds in request order, then by first appearance (hop, edge type, source, k). The draws of
        a node do not depend on what else is in the batch.

        Examples
        --------
        >>> batch = graph.sample_subgraph([3, 7], [15, 10], "cites", direction="in")  # doctest: +SKIP
        >>> batch.nodes["paper"][batch.row["paper:cites:paper"]]  # doctest: +SKIP
        """
        if expand not in ("first", "every"):
            raise InvalidRequest(f"expand {expand!r}: expected 'first' or 'every'")
        named = arguments.type_names("etypes", list(fanouts) if isinstance(fanouts, Mapping) and etypes is None else etypes)
        wanted = self._session.edge_type_ids(self.space, named)
        counts = self._fanouts(fanouts, wanted)
        ids = arguments.ids("seeds", seeds, least=-1)
        way = direction_of(direction)
        node_type, arrays = self._starts(ids, ntype, wanted, way)
        used = arguments.seed(seed)
        head = wire.SampleSubgraphRequest(
            space=self.space,
            version=self._version(version),
            seed=used,
            reach=[wire.Reach(edge_type=etype, counts=hops) for etype, hops in zip(wanted, counts, strict=True)],
            node_type=node_type,
            replace=replace,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=way,
            disjoint=disjoint,
            every=expand == "every",
            want_edge_ids=edge_ids,
            want_weights=weights,
            node_features=wanted_features(self.schema, node_features),
        )
        return self._sampled("sample_subgraph", answers.subgraph, head, arrays)

    def _fanouts(self, fanouts: Sequence[int] | Mapping[str, Sequence[int]], wanted: Sequence[int]) -> list[list[int]]:
        """Counts per edge type and hop, checked."""
        if isinstance(fanouts, Mapping):
            known = {self._session.edge_type(self.space, name)[0]: list(hops) for name, hops in fanouts.items()}
            if set(known) != set(wanted):
                named = [self.schema.edge_types[etype].name for etype in wanted]
                raise InvalidRequest(f"fanouts of {sorted(fanouts)} for edge types {named}: expected a list of counts for each")
            lists = [known[etype] for etype in wanted]
        else:
            lists = [list(fanouts)] * len(wanted)
        for hops in lists:
            if not hops or len(hops) != len(lists[0]):
                raise InvalidRequest(f"fanouts {fanouts!r}: expected one count per hop, as many for every edge type")
            for hop, count in enumerate(hops):
                arguments.count(f"fanouts[{hop}]", count, least=-1)
        return lists
