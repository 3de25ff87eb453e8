"""Labeled graphs within a graph space: sampling of labels, and the nodes of each label."""

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
    """Calls on the labeled graphs of a graph space.

    A node type declares a feature of kind bytes as its ``graph_label``. All nodes with the same
    label, of any type, form one graph. A node with an empty label belongs to none.
    """

    def sample_graph_labels(
        self, n: int, *, seed: int | None = None, version: int | None = None
    ) -> GraphLabels:
        """Sample graph labels uniformly with replacement.

        Parameters
        ----------
        n : int
            Number of labels. The first m of n labels equal those of a request for m.
        seed : int, optional
            Seed of the call. None: a random one, which the record returns.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        GraphLabels
            ``labels``, n byte strings.

        Raises
        ------
        NotFound
            If no node has a label.
        InvalidRequest
            If no node type declares a graph label.

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
        """Return the nodes of labeled graphs.

        Parameters
        ----------
        labels : list of bytes or str
            Labels; str is encoded as UTF-8.
        version : int, optional
            Version to read. None: the version of this graph, or the current one.

        Returns
        -------
        GraphNodes
            Row i holds the nodes of label i, ordered by (type, id); empty if no node has the label.

        Raises
        ------
        InvalidRequest
            If no node type declares a graph label, or ``labels`` is not a list of labels.

        Examples
        --------
        >>> graph.graph_nodes(["mutag 7"]).nodes  # doctest: +SKIP
        array([70, 71, 72])
        """
        if isinstance(labels, bytes | str):
            raise InvalidRequest(f"labels={labels!r}: expected a list of labels")
        labels = list(labels)
        for position, label in enumerate(labels):
            if not isinstance(label, bytes | str):
                raise InvalidRequest(f"labels[{position}]={label!r}: expected bytes or str")
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
