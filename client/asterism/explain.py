"""What sampling calls take: `Graph.explain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from asterism import answers, replay
from asterism.accounts import Asked, DrawShare, Explanation
from asterism.sampling import Sampler
from asterism.scans import Scans
from asterism_proto.v1 import graphd_pb2 as wire


class Explainer:
    """The sampling calls of a graph, each of which tells what it takes instead of what it draws.

    Examples
    --------
    >>> told = graph.explain.sample_nodes(100_000, "paper", seed=7)  # doctest: +SKIP
    >>> told.rounds, told.bytes, [(share.part, share.expected, share.drawn) for share in told.shares]  # doctest: +SKIP
    """

    def __init__(self, sampler: Sampler) -> None:
        self._asking = _Asking(sampler._session, sampler.space, version=sampler.version, lease=sampler._lease)

    def __getattr__(self, name: str) -> Callable[..., Explanation]:
        if name != "random_walk" and not (name.startswith("sample_") and hasattr(_Asking, name)):
            raise AttributeError(f"{name!r} is no sampling call; the names of those begin with sample_, or it is random_walk")
        call: Callable[..., Explanation] = getattr(self._asking, name)
        return call


class _Asking(Scans):
    """Asks for an account where a graph asks for a sample."""

    def _sampled(
        self,
        method: str,
        answer: Callable[[answers.Answered], Any],
        head: Any,
        arrays: dict[str, NDArray[Any]],
        check: Callable[[Any], None] = lambda _: None,
    ) -> Any:
        asked = wire.ExplainRequest(space=self.space, version=head.version, method=method, request=head.SerializeToString())
        reply: Any = self._session.read("explain", asked, arrays).head
        check(reply)
        return Explanation(
            method=method,
            asked=tuple(
                Asked(round=a.round, method=a.method, host=a.host, address=a.address, rows=a.rows, sent=a.sent, received=a.received)
                for a in reply.asked
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
            condition=reply.condition,
            seed=head.seed,
            version=reply.version,
            token=replay.token_of(method, head, arrays, reply),
        )
