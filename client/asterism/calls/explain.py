"""Cost of sampling calls: `Graph.explain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from asterism.calls import decoding, replay_tokens
from asterism.calls.all_calls import AllCalls
from asterism.calls.annotation_checks import check_argument_types
from asterism.calls.base import GraphCalls, Request
from asterism.records.explanation import (
    DrawShare,
    Explanation,
    RequestLimit,
    RequestPrice,
    StorageRequest,
)
from asterism_model import unicode_text
from asterism_model.graph_prices import price_request, section_sizes
from asterism_model.prices import check_reply
from asterism_proto.v1 import graphd_pb2 as graphd_pb


class ExplainCalls:
    """Sampling calls that return an `Explanation` of their cost instead of a sample.

    It has every ``sample_*`` call of a graph, and `random_walk`, with the same parameters.

    Raises
    ------
    AttributeError
        If the name is not that of a sampling call.

    Examples
    --------
    >>> explanation = graph.explain.sample_nodes(100_000, "paper", seed=7)  # doctest: +SKIP
    >>> explanation.rounds, explanation.bytes, [  # doctest: +SKIP
    ...     (share.part, share.expected, share.drawn) for share in explanation.shares
    ... ]
    """

    def __init__(self, sampler: GraphCalls) -> None:
        self._calls = _ExplainCalls(
            sampler._session,
            sampler.space,
            version=sampler.version,
            lease=sampler._lease,
            excluded=sampler._excluded,
        )

    def __getattr__(self, name: str) -> Callable[..., Explanation]:
        if name != "random_walk" and not (
            name.startswith("sample_") and hasattr(_ExplainCalls, name)
        ):
            raise AttributeError(
                f"explain.{name}: expected a sampling call, such as sample_neighbors or random_walk"
            )
        call: Callable[..., Explanation] = getattr(self._calls, name)
        return call


@unicode_text.refuse_surrogates
@check_argument_types
class _ExplainCalls(AllCalls):
    """Calls of a graph that request an explanation instead of a sample."""

    def _call(
        self,
        method: str,
        decode: Callable[[decoding.SamplingCall[Request]], Any],
        head: Request,
        arrays: dict[str, NDArray[Any]],
        check: Callable[[decoding.SamplingReply], None] = lambda _: None,
    ) -> Any:
        request = graphd_pb.ExplainRequest(
            space=self.space, version=head.version, method=method, request=head.SerializeToString()
        )
        price = price_request(head, section_sizes(arrays))
        if price is not None:
            check_reply(price)
        reply = (
            self._session.read("explain", request, arrays).with_head(graphd_pb.ExplainReply).head
        )
        check(reply)
        return Explanation(
            method=method,
            storage_requests=tuple(
                StorageRequest(
                    round=a.round,
                    method=a.method,
                    host=a.host,
                    address=a.address,
                    rows=a.rows,
                    bytes_sent=a.bytes_sent,
                    bytes_received=a.bytes_received,
                )
                for a in reply.storage_requests
            ),
            shares=tuple(
                DrawShare(
                    type_id=s.type_id,
                    part=s.part if s.part >= 0 else None,
                    host=s.host,
                    share=s.share,
                    expected=s.expected if s.HasField("expected") else None,
                    drawn=s.drawn,
                )
                for s in reply.shares
            ),
            reply_bytes=reply.reply_bytes,
            filter_plan=reply.filter_plan,
            seed=head.seed,
            version=reply.version,
            token=replay_tokens.make_token(method, head, arrays, reply),
            price=_price(reply.price) if reply.HasField("price") else None,
        )


def _price(price: graphd_pb.Price) -> RequestPrice:
    return RequestPrice(
        formula=price.formula,
        rows=price.rows,
        bytes=price.bytes,
        scratch=price.scratch,
        steps=price.steps,
        exact=price.exact,
        limits=tuple(
            RequestLimit(setting=entry.setting, value=entry.value, limit=entry.limit)
            for entry in price.limits
        ),
    )
