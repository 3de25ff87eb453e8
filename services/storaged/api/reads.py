"""What storaged is asked for the rarer operators: draws by number, edges between lists of nodes,
types and labels of nodes, the spread of weights.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import NDArray

from asterism_daemonkit.calls import CallContext
from asterism_graphkit.operators.labor import UNTIL_CONVERGED
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import storaged_pb2 as pb
from storaged import sampling

Sections = dict[str, NDArray[Any]]

MAX_NEIGHBORS = (60 << 20) // 16
"""That an importance step tells of, so that it fits into a message of 64 MiB."""


def decode_temporal_filter(
    request: Frame, section: str = "times"
) -> sampling.TemporalFilter | None:
    """Until when a request's nodes see edges; None where it does not say."""
    head: Any = request.head
    if not head.HasField("until"):
        return None
    times = request.arrays.get(section)
    dtype = "float64" if times is not None and times.dtype.kind == "f" else "int64"
    return sampling.TemporalFilter(
        times=request.array(section, dtype),
        strict=head.until.strict,
        last=head.until.last,
        want_times=head.until.want_times,
    )


def decode_labor_options(message: pb.Variates) -> sampling.LaborOptions:
    """Whose variates keep edges."""
    if message.importance < UNTIL_CONVERGED:
        raise InvalidRequest(
            f"{message.importance} importance steps: expected 0 or more, or "
            f"{UNTIL_CONVERGED}: until they change little"
        )
    return sampling.LaborOptions(
        layer_dependency=message.layer_dependency, importance=message.importance
    )


def decode_importances(request: Frame, edge_type: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Levels and importances along an edge type, where importance steps were taken before; None
    where the request has none.
    """
    names = f"levels.{edge_type}", f"importances.{edge_type}"
    if not any(name in request.arrays for name in names):
        return None
    return request.array(names[0], "float64"), request.array(names[1], "float64")


class ReadHandlers(ABC):
    """Handlers of the Store service, one part of them."""

    @abstractmethod
    def _version(
        self, request: Frame, call: CallContext, *, globally: int = 0
    ) -> sampling.LocalVersion:
        """Return the version that a request names, after validation of the request.

        ``globally`` is the element that is drawn, for global draws with replacement alone; 0
        otherwise."""

    def draw_numbered(self, request: Frame, call: CallContext) -> Frame:
        """Draws of nodes by their numbers."""
        head: Any = request.head
        sample = sampling.sample_nodes_by_index(
            self._version(request, call, globally=sampling.NODE).with_weights(
                head.weight, sampling.NODE, head.types
            ),
            types=list(head.types),
            draw_indices=request.array("numbers", "int64"),
            kinds=request.optional_array("kinds", "int32"),
            seed=head.seed,
            uniform=head.uniform,
            want_probabilities=head.want_probabilities,
            checkpoint=call.remaining,
        )
        sections = {"ids": sample.ids, "types": sample.types, "probabilities": sample.probabilities}
        return Frame(
            pb.DrawNumberedReply(),
            {name: array for name, array in sections.items() if array is not None},
        )

    def read_between(self, request: Frame, call: CallContext) -> Frame:
        """The edges of nodes that live here to some others."""
        head: Any = request.head
        edges = sampling.find_induced_edges(
            self._version(request, call).with_weights(head.weight, sampling.EDGE, head.edge_types),
            edge_types=list(head.edge_types),
            node_type=head.node_type,
            ids=request.array("ids", "int64"),
            types=request.optional_array("types", "int32"),
            cols=request.array("cols", "int64"),
            col_types=request.optional_array("col_types", "int32"),
            groups=request.optional_array("groups", "int32"),
            col_groups=request.optional_array("col_groups", "int32"),
            direction=head.direction,
            want_weights=head.want_weights,
            want_edge_ids=head.want_edge_ids,
            checkpoint=call.remaining,
        )
        sections: Sections = {"counts": edges.counts, "cols": edges.cols}
        optional_columns = {"types": edges.types, "weights": edges.weights, "eids": edges.eids}
        return Frame(
            pb.ReadBetweenReply(),
            sections
            | {name: array for name, array in optional_columns.items() if array is not None},
        )

    def read_node_types(self, request: Frame, call: CallContext) -> Frame:
        """The types of nodes that live here."""
        head: Any = request.head
        version, types = self._version(request, call), request.optional_array("types", "int32")
        return Frame(
            pb.ReadNodeTypesReply(),
            {
                "types": sampling.node_types(
                    version, head.node_type, request.array("ids", "int64"), types, call.remaining
                )
            },
        )

    def read_labels(self, request: Frame, call: CallContext) -> Frame:
        """A page of the graph labels of parts held here."""
        head: Any = request.head
        sections, cursor = sampling.read_graph_labels(
            self._version(request, call), list(head.parts), head.cursor
        )
        return Frame(pb.ReadLabelsReply(next_cursor=cursor), sections)

    def read_labelled(self, request: Frame, call: CallContext) -> Frame:
        """The nodes of graph labels."""
        head: Any = request.head
        sections = sampling.read_nodes_by_label(
            self._version(request, call),
            list(head.parts),
            request.array("indptr", "int64"),
            request.array("values", "uint8"),
        )
        return Frame(pb.ReadLabelledReply(), sections)

    def read_spread(self, request: Frame, call: CallContext) -> Frame:
        """How the weights of a type are spread over the parts held here."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, head.element, [head.type_id]
        )
        histogram = sampling.build_histogram(
            version, head.element, head.type_id, list(head.parts), call.remaining
        )
        return Frame(pb.ReadSpreadReply(), {"counts": histogram.counts, "sums": histogram.sums})

    def rank(self, request: Frame, call: CallContext) -> Frame:
        """The nodes at which walks end most often, where all parts are held here."""
        head: Any = request.head
        ranking = sampling.rank_nodes(
            self._version(request, call).with_weights(head.weight, sampling.EDGE, head.edge_types),
            ids=request.array("ids", "int64"),
            kinds=request.array("types", "int32"),
            edge_types=list(head.edge_types),
            direction=head.direction,
            uniform=head.uniform,
            alpha=head.alpha,
            epsilon=head.epsilon,
            top=head.top,
            checkpoint=call.remaining,
        )
        return Frame(
            pb.RankReply(),
            {
                "ids": ranking.ids,
                "kinds": ranking.kinds,
                "scores": ranking.scores,
                "residuals": ranking.residuals,
            },
        )

    def raise_importances(self, request: Frame, call: CallContext) -> Frame:
        """An importance step of LABOR, of nodes that live here."""
        head: Any = request.head
        version = self._version(request, call).with_weights(
            head.weight, sampling.EDGE, [fanout.edge_type for fanout in head.along]
        )
        sections = Sections()
        for fanout in head.along:
            local_type, _ = sampling.end_types(version, fanout.edge_type, head.direction)
            levels, importances = decode_importances(request, fanout.edge_type) or (None, None)
            importance_steps = sampling.ImportanceSteps(
                version,
                edge_type=fanout.edge_type,
                direction=head.direction,
                uniform=head.uniform,
                count=fanout.count,
                ids=request.array(f"ids.{local_type}", "int64"),
                levels=levels,
                checkpoint=call.remaining,
            )
            if importance_steps.neighbors.size > MAX_NEIGHBORS:
                raise InvalidRequest(
                    "the nodes of the hop that live on one host lead to "
                    f"{importance_steps.neighbors.size} different ones, with importance "
                    "steps to "
                    f"{MAX_NEIGHBORS} at most; start from fewer seeds, or ask without "
                    "importance steps"
                )
            outputs: Sections = {
                "largest": importance_steps.raise_importances(importances),
                "levels": importance_steps.levels,
            }
            if importances is None:
                outputs["neighbors"] = importance_steps.neighbors
            sections |= {f"{name}.{fanout.edge_type}": column for name, column in outputs.items()}
        return Frame(pb.RaiseImportancesReply(), sections)
