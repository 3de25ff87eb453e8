"""Replay of sampling calls from their tokens."""

from __future__ import annotations

from typing import Any, cast

from numpy.typing import ArrayLike

from asterism.calls import replay_tokens, validation
from asterism.calls.base import TYPE_PER_NODE, CandidateTypes, GraphCalls
from asterism.calls.excluded_edges import EdgeExclusion, ReverseTypes
from asterism_proto.errors import InvalidRequest
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class ReplayCalls(GraphCalls):
    """The call that repeats a sampling call from its token."""

    def replay(
        self,
        token: str,
        nodes: ArrayLike | None = None,
        ntype: ArrayLike | None = None,
        *,
        exclude: validation.Exclusions | EdgeExclusion = None,
        reverse_types: ReverseTypes = None,
        times: ArrayLike | None = None,
    ) -> Any:
        """Repeat a sampling call from its token; the record is the same to the bit.

        Parameters
        ----------
        token : str
            ``token`` of a sample. It holds the whole request except the nodes.
        nodes : array_like of int64, shape (m,), optional
            Nodes that the call started from, if it started from nodes.
        ntype : array_like of int, shape (m,), optional
            Type ids of the nodes, if the call had one per node.
        exclude : optional
            Edges that the call excluded; for `sample_negatives`, its exclusions, where ``nodes``
            holds its pairs.
        reverse_types : dict of str to str, optional
            Reverse of edge types, if the call had them.
        times : array_like of int64 or float64, shape (m,), optional
            Times of the nodes, if the call had times.

        Returns
        -------
        record
            The record of the original call, such as `NodeSample`, read from the same version.

        Raises
        ------
        InvalidRequest
            If the token is invalid or belongs to another space, or the nodes differ.
        NotFound
            If the version is no longer kept, or its number now denotes another version.

        Examples
        --------
        >>> first = graph.sample_neighbors(seeds, "cites", 5)  # doctest: +SKIP
        >>> again = graph.replay(first.token, seeds)  # doctest: +SKIP
        """
        call, request = replay_tokens.decode_token(token)
        if request.space != self.space:
            raise InvalidRequest(
                f"token of a call to space {request.space!r}: expected one of space "
                f"{self.space!r}; use client.graph({request.space!r})"
            )
        request.version = self._version(request.version)
        node_type: int = getattr(request, "node_type", TYPE_PER_NODE)
        ntypes = (
            CandidateTypes([node_type] if node_type >= 0 else getattr(request, "types", ()))
            or ntype
        )
        if nodes is not None:
            edges = getattr(request, "exclude_edge_types", ())
            nodes = (
                self._resolve_pairs(nodes, ntypes, edges, request.version or None)
                if edges
                else self._as_ids("nodes", nodes, ntypes, request.version or None)
            )
        version = request.version or None
        if isinstance(request, graphd_pb.SampleNegativesRequest):
            exclusions = self._resolve_exclusions(
                cast(validation.Exclusions, exclude), ntypes, version
            )
            arrays = replay_tokens.replay_sections(call, request, nodes, exclusions)
        else:
            arrays = replay_tokens.replay_sections(call, request, nodes, None)
            if followed := replay_tokens.followed_edge_types(request):
                arrays |= self._exclusion_sections(
                    cast(EdgeExclusion, exclude), reverse_types, followed, version
                )
        if ntype is not None and "nodes" in arrays:
            types = validation.as_array("ntype", ntype, "type ids").reshape(-1)
            arrays["types"] = self._types(types, arrays["nodes"])
        if times is not None:
            arrays["times"] = validation.times(times, len(arrays.get("nodes", ())))
        replay_tokens.check_nodes(call, request, arrays)
        decode = replay_tokens.DECODERS[call.method]
        return self._call(
            call.method,
            decode,
            request,
            arrays,
            check=lambda head: replay_tokens.check_version(call, self.space, head),
        )
