"""Fanouts, and the features that samples bring along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, Names, parse_direction
from asterism.calls.string_ids import NodeTypes
from asterism.records.samples import FanoutSample
from asterism_model.schema import Schema
from asterism_proto.errors import InvalidRequest, NotFound
from asterism_proto.v1 import graphd_pb2 as graphd_pb

FeatureSelection = Sequence[str] | Mapping[str, Sequence[str]] | None
"""Features to bring along: names, or names by node type."""


class FanoutCalls(GraphCalls):
    """The part of a graph that goes from hop to hop."""

    def sample_fanout(
        self,
        nodes: ArrayLike,
        metapath: Sequence[Names],
        fanouts: Sequence[int],
        *,
        ntype: NodeTypes = None,
        weighted: bool = True,
        weight: str = "",
        where: str = "",
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
        """Draw neighbors of neighbors: hop h draws ``fanouts[h]`` neighbors of every entry of the
        hop before.

        Parameters
        ----------
        nodes : int64[m]
            Where to start.
        metapath : list of (str or list of str)
            The edge types of each hop.
        fanouts : list of int
            Neighbors per node of each hop.
        ntype, weighted, weight, where, replace, direction, weights, edge_ids, probabilities
            As of `sample_neighbors`.
        times, strict, strategy, edge_times
            As of `sample_neighbors`: the time of each node holds for all that is drawn from it, hop
            after hop. Hops along edge types that have no times are drawn as without; of one hop all
            have some, or none.
        node_features : list of str, or dict of node type to list of str
            Features of the starts and of every drawn node to bring along, in the same request: of
            each node type what is named for it, or what it has of a list.

        Returns
        -------
        FanoutSample
            ``hops[h].nodes`` is int64[m * fanouts[0] * .. * fanouts[h]], padded with -1; what has
            no node has no neighbors. ``features`` and ``hops[h].features`` are as
            `Graph.node_features` gives them for these nodes, by node type.

        Examples
        --------
        >>> sample = graph.sample_fanout(seeds, ["cites", "cites"], [15, 10])  # doctest: +SKIP
        >>> sample.hops[1].nodes.reshape(len(seeds), 15, 10)  # doctest: +SKIP
        """
        if isinstance(metapath, str) or len(metapath) != len(fanouts) or not fanouts:
            raise InvalidRequest(
                f"metapath {metapath!r} and fanouts {fanouts!r}: expected two lists of the "
                "same length, one entry per hop"
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
        resolved_seed = validation.seed(seed)
        counts = [validation.count(f"fanouts[{h}]", fanout) for h, fanout in enumerate(fanouts)]
        head = graphd_pb.SampleFanoutRequest(
            space=self.space,
            version=self._version(version),
            seed=resolved_seed,
            hops=[
                graphd_pb.Hop(edge_types=step, count=fanout)
                for step, fanout in zip(steps, counts, strict=True)
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
        return self._call("sample_fanout", decoding.fanout_sample, head, arrays | time_arrays)


def requested_features(schema: Schema, columns: FeatureSelection) -> list[graphd_pb.NodeColumns]:
    """Features to bring along, as they travel.

    Raises
    ------
    NotFound
        Where a node type has no feature of that name; of a plain list: where no node type has one.
    """
    if columns is None:
        return []
    if isinstance(columns, str):
        raise InvalidRequest(
            f"node_features {columns!r}: expected a list of names, or lists by node type"
        )
    if isinstance(columns, Mapping):
        return [
            graphd_pb.NodeColumns(type_id=schema.node_type_id(name), names=list(names))
            for name, names in columns.items()
        ]
    available = [
        [name for name in columns if name == "weight" or any(f.name == name for f in t.features)]
        for t in schema.node_types
    ]
    for name in columns:
        if not any(name in names for names in available):
            raise NotFound(
                f"no node type has a feature {name!r}; they are "
                f"{', '.join(t.name for t in schema.node_types)}"
            )
    return [
        graphd_pb.NodeColumns(type_id=type_id, names=names)
        for type_id, names in enumerate(available)
        if names
    ]
