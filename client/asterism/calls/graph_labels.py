"""Graphs within the graph: labels that nodes carry, and the nodes of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.calls import decoding, validation
from asterism.calls.base import GraphCalls, version_of
from asterism.records.samples import GraphLabels, GraphNodes
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class GraphLabelCalls(GraphCalls):
    """The part of a graph that tells the graphs within it apart.

    A node type declares a feature of kind bytes as its ``graph_label``. Nodes of the same label, of
    whatever type, are one graph; one whose label is empty is in none."""

    def sample_graph_labels(
        self, n: int, *, seed: int | None = None, version: int | None = None
    ) -> GraphLabels:
        """Draw labels of graphs, each alike, with replacement.

        Parameters
        ----------
        n : int
            How many. The first m of n draws are the draws of a request for m.

        Returns
        -------
        GraphLabels
            ``labels``, n byte strings.

        Raises
        ------
        NotFound
            Where no node has a label.
        InvalidRequest
            Where no node type declares one.

        Examples
        --------
        >>> batch = graph.graph_nodes(graph.sample_graph_labels(32).labels)  # doctest: +SKIP
        """
        head = graphd_pb.SampleGraphLabelsRequest(
            space=self.space,
            version=self._version(version),
            seed=validation.seed(seed),
            count=validation.count("n", n),
        )
        return self._call("sample_graph_labels", decoding.graph_labels, head, {})

    def graph_nodes(
        self, labels: Iterable[bytes | str], *, version: int | None = None
    ) -> GraphNodes:
        """The nodes of graphs.

        Parameters
        ----------
        labels : list of bytes or str
            Text counts as UTF-8.

        Returns
        -------
        GraphNodes
            Row i is label i's nodes by (type, id); empty where no node has it.

        Raises
        ------
        InvalidRequest
            Where no node type declares a graph label.
        """
        if isinstance(labels, bytes | str):
            raise InvalidRequest(f"labels {labels!r}: expected a list of labels")
        labels = list(labels)
        for position, label in enumerate(labels):
            if not isinstance(label, bytes | str):
                raise InvalidRequest(f"labels[{position}] {label!r}: expected bytes or text")
        texts = [label.encode() if isinstance(label, str) else label for label in labels]
        indptr = np.concatenate([[0], np.cumsum([len(text) for text in texts])]).astype(np.int64)
        head = graphd_pb.GraphNodesRequest(space=self.space, version=self._version(version))
        sections: dict[str, NDArray[Any]] = {
            "labels.indptr": indptr,
            "labels.values": np.frombuffer(b"".join(texts), np.uint8),
        }
        reply = self._session.read("graph_nodes", head, sections)
        return GraphNodes(
            indptr=reply.array("indptr", "int64"),
            nodes=reply.array("ids", "int64"),
            types=reply.array("types", "int32"),
            version=version_of(reply.head),
        )
