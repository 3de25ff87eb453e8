"""Table of the services' methods, derived from the descriptors: paths, types, names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from asterism_proto import framing
from asterism_proto.errors import InvalidRequest
from asterism_proto.framing import Frame
from asterism_proto.v1 import common_pb2, graphd_pb2, metad_pb2, storaged_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One method of a service."""

    service: str
    """Full name of the service, such as ``asterism.v1.Graph``."""
    name: str
    """Name in the .proto file, such as ``SampleNodes``."""
    python_name: str
    """Name of the handler, such as ``sample_nodes``."""
    request: type[Message]
    """Message type of the request, or of the head of its frame."""
    reply: type[Message]
    """Message type of the reply, or of the head of its frame."""
    is_framed: bool
    """True if request and reply are frames with arrays."""

    @property
    def path(self) -> str:
        """gRPC path, such as ``/asterism.v1.Graph/SampleNodes``."""
        return f"/{self.service}/{self.name}"

    def pack(self, content: Message | Frame[Message]) -> bytes:
        """Serialize a request or reply of this method."""
        return (
            framing.encode(content) if isinstance(content, Frame) else content.SerializeToString()
        )

    def unpack_request(self, data: bytes) -> Message | Frame[Message]:
        """Parse a request; InvalidRequest if the bytes are malformed."""
        return self._unpack(data, self.request)

    def unpack_reply(self, data: bytes) -> Message | Frame[Message]:
        """Parse a reply; InvalidRequest if the bytes are malformed."""
        return self._unpack(data, self.reply)

    def _unpack(self, data: bytes, kind: type[Message]) -> Message | Frame[Message]:
        if self.is_framed:
            return framing.decode(data, kind)
        message = kind()
        try:
            message.ParseFromString(data)
        except DecodeError as error:
            raise InvalidRequest(
                f"{self.name}: not a {kind.DESCRIPTOR.name}: the message cannot be parsed ({error})"
            ) from error
        return message


def _snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _method_table(service: ServiceDescriptor) -> dict[str, Method]:
    table = {}
    for method in service.methods:
        framed = method.input_type.full_name == common_pb2.Frame.DESCRIPTOR.full_name
        messages = service.file.message_types_by_name
        request = messages[method.name + "Request"] if framed else method.input_type
        reply = messages[method.name + "Reply"] if framed else method.output_type
        python_name = _snake_case(method.name)
        table[python_name] = Method(
            service=service.full_name,
            name=method.name,
            python_name=python_name,
            request=GetMessageClass(request),
            reply=GetMessageClass(reply),
            is_framed=framed,
        )
    return table


GRAPH = _method_table(graphd_pb2.DESCRIPTOR.services_by_name["Graph"])
"""Methods of graphd for clients, by handler name."""
STORE = _method_table(storaged_pb2.DESCRIPTOR.services_by_name["Store"])
"""Methods of storaged for graphd, by handler name."""
CATALOG = _method_table(metad_pb2.DESCRIPTOR.services_by_name["Catalog"])
"""Methods of metad for clients, called through graphd, by handler name."""
ACCESS = _method_table(metad_pb2.DESCRIPTOR.services_by_name["Access"])
"""Methods of metad for administrators, called through graphd, by handler name."""
HEARTBEATS = _method_table(metad_pb2.DESCRIPTOR.services_by_name["Heartbeats"])
"""Methods of metad for storaged and graphd, by handler name."""

SamplingRequest = (
    graphd_pb2.SampleNodesRequest
    | graphd_pb2.SampleEdgesRequest
    | graphd_pb2.SampleNeighborsRequest
    | graphd_pb2.SampleFanoutRequest
    | graphd_pb2.SampleNodesLikeRequest
    | graphd_pb2.SampleNegativesRequest
    | graphd_pb2.SampleLayerRequest
    | graphd_pb2.SampleLayersRequest
    | graphd_pb2.SampleGraphLabelsRequest
    | graphd_pb2.SampleSubgraphRequest
    | graphd_pb2.SampleEgoSubgraphsRequest
    | graphd_pb2.SampleLaborRequest
    | graphd_pb2.SampleHgtRequest
    | graphd_pb2.RandomWalkRequest
    | graphd_pb2.SamplePinsageRequest
)
"""Requests of `GRAPH` that sample by a seed, so they can be explained and replayed."""
_GRAPH_NAMES = {method.request: name for name, method in GRAPH.items()}
SAMPLING_METHODS = tuple(_GRAPH_NAMES[request] for request in get_args(SamplingRequest))
"""Handler names of the methods of sampling requests."""
