"""File with the published versions and their routes, from a folder's writer to readers."""

from __future__ import annotations

import logging
import struct
import threading
import zlib
from pathlib import Path

from google.protobuf.message import DecodeError

from asterism_io.durable_files import write_durably
from asterism_proto.errors import Corrupt, NotFound
from asterism_proto.v1 import metad_pb2 as metad_pb

logger = logging.getLogger(__name__)

FILE_NAME = "published.bin"
_CRC_TAG = b"\xfd\x7f"
"""Tag of PollReply's field 2047, of type fixed32.

No message uses that field, so readers that do not know the checksum skip it.
"""
_CRC = struct.Struct("<I")
_TRAILER_BYTES = len(_CRC_TAG) + _CRC.size


class PublishedFile:
    """Writer's side of the file: it is rewritten whenever the served versions change."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._lock = threading.Lock()
        self._last = b""

    def update(self, reply: metad_pb.PollReply) -> None:
        """Save the spaces and versions of a poll reply."""
        data = metad_pb.PollReply(spaces=reply.spaces).SerializeToString(deterministic=True)
        with self._lock:
            if data != self._last:
                try:
                    write_durably(self._path, data + _CRC_TAG + _CRC.pack(zlib.crc32(data)))
                    self._last = data
                except OSError:
                    logger.exception("published_file_not_written")


def read_published(folder: Path) -> metad_pb.PollReply:
    """Return what was published at the writer's last update.

    Raises
    ------
    NotFound
        If the folder has no such file.
    Corrupt
        If the file cannot be read, or its content is not what was written.
    """
    path = folder / FILE_NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFound(
            f"{path}: {error.strerror}; open the folder once for writing, with mode 'w'"
        ) from error
    if not data:
        raise Corrupt(f"{path}: empty; open the folder once for writing, with mode 'w'")
    if data[-_TRAILER_BYTES : -_CRC.size] == _CRC_TAG:  # earlier releases wrote no checksum
        data, (crc,) = data[:-_TRAILER_BYTES], _CRC.unpack(data[-_CRC.size :])
        if zlib.crc32(data) != crc:
            raise Corrupt(
                f"{path}: its content does not match its checksum; open the folder once for "
                "writing, with mode 'w'"
            )
    reply = metad_pb.PollReply()
    try:
        reply.ParseFromString(data)
    except DecodeError as error:
        raise Corrupt(
            f"{path}: cannot be read ({error}); open the folder once for writing, with mode 'w'"
        ) from error
    return reply
