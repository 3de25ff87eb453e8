"""Fanout sampling, and the selection of features that samples return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism.calls.string_id_hashing import NodeTypes
from asterism.records.samples import FanoutSample
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import graphd_pb2 as graphd_pb

FeatureSelection = Sequence[str] | Mapping[str, Sequence[str]] | None
"""Features to return with a sample: names, or names by node type."""


class FanoutCalls(GraphCalls):
    """Calls that sample hop by hop."""

    def sample_fanout(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        fanouts: Sequence[float],
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
        exclude: EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        replace: bool = True,
        direction: str = "out",
        times: ArrayLike | None = None,
        strict: bool = False,
        strategy: str = "uniform",
        edge_times: bool = False,
        weights: bool = True,
        edge_ids: bool = False,
        probabilities: bool = False,
        node_features: FeatureSelection = None,
        seed: int | None = None,
        version: int | None = None,
    ) -> FanoutSample:
        """Sample neighbors hop by hop, keeping one entry for every sampled neighbor.

        Hop h samples ``fanouts[h]`` neighbors of every entry of the hop before.

        Parameters
        ----------
        nodes : array_like of int64, shape (m,)
            Start nodes. -1 means "no node".
        metapath : list of (str or list of str)
            Edge types of each hop.
        fanouts : list of (int or float)
            Neighbors per node of each hop. A float above 0 and at most 1 is a share of each node's
            edges, as in `sample_neighbors`; it needs ``replace=False``.
        ntype : str, or array_like of int, shape (m,), optional
            Node type of all nodes by name, or of each node by type id. Needed only where the first
            hop's edge types start at several node types and ids are per type.
        weighted : bool, default True
            Sample in proportion to edge weights. False: uniformly.
        weight : str, default ""
            Name of the weights to sample by and to return: a weight table of all these edge types.
            "": the edges' own weights.
        where : str, default ""
            Filter on the edges, as in `sample_neighbors`.
        exclude, reverse_types : optional
            Edges that are as if they did not exist, as in `sample_neighbors`.
        replace : bool, default True
            Sample with replacement. False: distinct edges; a node with too few edges returns all of
            them.
        direction : {"out", "in"}, default "out"
            Follow edges forward, or in reverse (where the schema keeps in-copies).
        times : array_like of int64 or float64, shape (m,), optional
            Time of each start node. It applies to everything that is sampled from that node, over
            all hops. Hops along edge types without times are sampled without a temporal filter;
            within one hop, all edge types have times or none has.
        strict : bool, default False
            Ignore edges of exactly that time too.
        strategy : {"uniform", "last"}, default "uniform"
            Choice among the edges up to that time, as in `sample_neighbors`.
        edge_times : bool, default False
            Return the time of each edge; needs ``times``.
        weights : bool, default True
            Return the edge weights, those that ``weight`` names.
        edge_ids : bool, default False
            Return the edge ids.
        probabilities : bool, default False
            Return the probability of each sampled edge, as in `sample_neighbors`.
        node_features : list of str, or dict of str to list of str, optional
            Features of the start nodes and of every sampled node to return in the same request:
            names by node type, or one list of names, of which each node type returns those that it
            has.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        FanoutSample
            ``hops[h].nodes`` is an ndarray of int64, shape (m * fanouts[0] * .. * fanouts[h],),
            padded with -1; an entry without a node has no neighbors. ``hops[h].fanout`` is the
            number of entries of each entry of the hop before: ``fanouts[h]``, or, for a share, the
            largest number of neighbors of a node. ``features`` and
            ``hops[h].features`` hold the features by node type, as `Graph.node_features` returns
            them for these nodes.

        Raises
        ------
        InvalidRequest
            If ``metapath`` and ``fanouts`` differ in length, or other arguments do not fit
            together.
        NotFound
            If there is no such edge type, weight table, feature or version.

        Examples
        --------
        >>> sample = graph.sample_fanout(seeds, ["cites", "cites"], [15, 10])  # doctest: +SKIP
        >>> sample.hops[1].nodes.reshape(len(seeds), 15, 10)  # doctest: +SKIP
        """
        if isinstance(metapath, str) or len(metapath) != len(fanouts) or not fanouts:
            raise InvalidRequest(
                f"metapath={metapath!r}, fanouts={fanouts!r}: expected two lists of one length, "
                "an entry for each hop"
            )
        steps = [
            self._session.edge_type_ids(self.space, validation.type_names("metapath", step))
            for step in metapath
        ]
        wire_direction = parse_direction(direction)
        node_type, arrays = self._seed_sections(
            nodes, ntype, steps[0], wire_direction, version=version
        )
        temporal_filter, time_arrays = validation.temporal_filter(
            times, len(arrays["nodes"]), strict=strict, strategy=strategy, edge_times=edge_times
        )
        excluded = self._exclusion_sections(
            exclude, reverse_types, [etype for step in steps for etype in step], version
        )
        resolved_seed = validation.seed(seed)
        counts = [
            validation.neighbors_per_node(f"fanouts[{h}]", fanout, replace=replace)
            for h, fanout in enumerate(fanouts)
        ]
        head = graphd_pb.SampleFanoutRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            hops=[
                graphd_pb.Hop(edge_types=step, count=count, share=share)
                for step, (count, share) in zip(steps, counts, strict=True)
            ],
            node_type=node_type,
            replace=replace,
            uniform=not weighted,
            weight=weight,
            where=where,
            direction=wire_direction,
            want_weights=weights,
            want_edge_ids=edge_ids,
            want_probabilities=probabilities,
            temporal_filter=temporal_filter,
            node_features=requested_features(self.schema, node_features),
        )
        return self._call(
            "sample_fanout", decoding.fanout_sample, head, arrays | time_arrays | excluded
        )


def requested_features(schema: Schema, columns: FeatureSelection) -> list[graphd_pb.NodeColumns]:
    """Return the features to return with a sample in their wire form.

    Raises
    ------
    NotFound
        If a node type has no feature of that name, or, for a plain list, if no node type has one.
    """
    if columns is None:
        return []
    if isinstance(columns, str):
        raise InvalidRequest(
            f"node_features={columns!r}: expected a list of names, or a list by node type"
        )
    if isinstance(columns, Mapping):
        return [
            graphd_pb.NodeColumns(type_id=schema.node_type_id(name), names=validation.names(names))
            for name, names in columns.items()
        ]
    columns = validation.names(columns)
    available = [
        [name for name in columns if name == "weight" or any(f.name == name for f in t.features)]
        for t in schema.node_types
    ]
    for name in columns:
        if not any(name in names for names in available):
            raise NotFound(
                f"node_features with {name!r}: expected a feature of a node type; there are "
                f"{', '.join(sorted({f.name for t in schema.node_types for f in t.features}))}"
            )
    return [
        graphd_pb.NodeColumns(type_id=type_id, names=names)
        for type_id, names in enumerate(available)
        if names
    ]
