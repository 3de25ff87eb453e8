"""Exponential-key selection over the rows of several types and partitions.

Arguments, heap and exclusions are the same for nodes and edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import as_kernel_array
from asterism_graphkit.random import rng
from asterism_graphkit.relabel import hash_index
from asterism_model.elements import NODE
from asterism_proto.errors import InvalidRequest
from storaged.kernels import exponential_keys
from storaged.kernels.neighbors import probabilities
from storaged.sampling.cancellation import Checkpoint, StopFlag, blocks, no_checkpoint
from storaged.sampling.version import LocalVersion, check_length, check_output_size
from storaged.store.image import F32, I64, U8, PartImage

_ROWS, _SORTED = 1 << 20, 1 << 16
"""Number of rows added, and of selected rows sorted, in a first block."""


class ExponentialSelection:
    """Selection of the ``count`` rows with the smallest exponential keys.

    After `finish`, the rows are in key order.
    """

    def __init__(
        self,
        version: LocalVersion,
        element: int,
        *,
        types: Sequence[int],
        parts: Sequence[int],
        count: int,
        taken_ids: NDArray[np.int64],
        taken_types: NDArray[np.int32],
        checkpoint: Checkpoint = no_checkpoint,
    ) -> None:
        check_output_size("count", count)
        self._checkpoint = checkpoint
        check_length("taken_types", taken_types, taken_ids.size)
        for part in parts:
            if not 0 <= part < version.schema.parts:
                raise InvalidRequest(
                    f"part {part}: expected a partition of the space, 0 to "
                    f"{version.schema.parts - 1}"
                )
        for type_id in types:
            version.type_name(element, type_id)
        self.entries = [
            (type_id, version.image(part))
            for type_id in sorted(set(types))
            for part in sorted(set(parts))
        ]
        rows = (
            image.nodes[t].rows if element == NODE else image.edges[t].outgoing.nbr.size
            for t, image in self.entries
        )
        count = min(count, sum(rows))  # There cannot be more.
        self.keys, self.tags = np.empty(count, np.float64), np.empty(count, np.int32)
        self.items, self.payloads = np.empty(count, np.int64), np.empty(count, np.int64)
        self._element = element
        self._size = 0
        self._excluded = {
            t: as_kernel_array(hash_index.build_index(np.unique(taken_ids[taken_types == t]))[0])
            for t in sorted(set(types))
        }

    def add_rows(
        self,
        seed: int,
        type_id: int,
        image: PartImage,
        *,
        rows: int,
        ids: I64,
        live: U8,
        weights: F32,
        uniform: bool,
    ) -> None:
        """Add the rows of one (type, partition) to the selection."""
        excluded, key = (
            self._excluded[type_id],
            rng.key_of(seed, rng.EXPONENTIAL_KEY, self._element, type_id),
        )
        with StopFlag(self._checkpoint) as stop:
            for block in blocks(rows, _ROWS, self._checkpoint):
                self._size = int(
                    exponential_keys.select_rows(
                        exponential_keys.SelectionParams(
                            key=key,
                            tag=np.int32(type_id),
                            first=np.int64(block.start),
                            end=np.int64(block.stop),
                            parts=np.int64(image.parts),
                            part=np.int64(image.part),
                            uniform=uniform,
                            excluded_shift=hash_index.shift_of(excluded),
                            size=np.int64(self._size),
                        ),
                        ids,
                        live,
                        weights,
                        excluded,
                        self.keys,
                        self.tags,
                        self.items,
                        self.payloads,
                        stop.flag,
                    )
                )
                stop.check()

    def finish(self) -> None:
        """Sort the selected rows and drop the unused rest of the heap."""
        with StopFlag(self._checkpoint) as stop:
            for block in blocks(self._size, _SORTED, self._checkpoint):
                first, last = np.int64(self._size - block.stop), np.int64(self._size - block.start)
                exponential_keys.sort_selection(
                    self.keys, self.tags, self.items, self.payloads, first, last, stop.flag
                )
                stop.check()
        self.keys, self.tags = self.keys[: self._size], self.tags[: self._size]
        self.items, self.payloads = self.items[: self._size], self.payloads[: self._size]

    def selected_rows(
        self, type_id: int, part: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """Return the selected rows of one (type, partition), and their positions in the selection.

        Requires `finish`.
        """
        places = np.flatnonzero((self.tags == type_id) & (self.payloads >> 32 == part))
        return as_kernel_array(self.payloads[places] & 0xFFFFFFFF), as_kernel_array(
            places.astype(np.uint32)
        )

    def remaining_weight(
        self, type_id: int, image: PartImage, *, rows: int, ids: I64, live: U8, weights: F32
    ) -> float:
        """Return the weight of the rows of one (type, partition) that are not excluded."""
        excluded, sums = self._excluded[type_id], np.zeros(2, np.float64)
        for block in blocks(rows, _ROWS, self._checkpoint):
            params = probabilities.RowRange(
                first=np.int64(block.start),
                end=np.int64(block.stop),
                parts=np.int64(image.parts),
                part=np.int64(image.part),
                excluded_shift=hash_index.shift_of(excluded),
            )
            probabilities.sum_remaining_rows(params, ids, live, weights, excluded, sums)
        return float(sums[0] + sums[1])
