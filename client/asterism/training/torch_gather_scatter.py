"""Gathers and scatters of torch tensors, with gradients.

They are the operations that `asterism.ops` provides for arrays. This module never imports torch: a
caller that has a tensor has imported it.
"""

from __future__ import annotations

import sys
from typing import Any

from asterism_proto.errors import InvalidRequest

Tensor = Any
"""A ``torch.Tensor``."""


def is_tensor(value: object) -> bool:
    """Return whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def gather(params: Tensor, indices: Any) -> Tensor:
    """Return rows of a tensor; the gradient is summed into the rows."""
    return params.index_select(0, _index("indices", indices, params, params.shape[0]))


def scatter_add(updates: Tensor, indices: Any, size: int) -> Tensor:
    """Return the sum per output row; the gradient is gathered."""
    index = _places(updates, indices, size)
    return updates.new_zeros((size, *updates.shape[1:])).index_add(0, index, updates)


def scatter_mean(updates: Tensor, indices: Any, size: int) -> Tensor:
    """Return the mean per output row."""
    index = _places(updates, indices, size)
    counts = updates.new_zeros(size).index_add(0, index, updates.new_ones(len(index))).clamp(min=1)
    return scatter_add(updates, index, size) / counts.reshape(size, *([1] * (updates.dim() - 1)))


def scatter_max(updates: Tensor, indices: Any, size: int, *, empty: float) -> Tensor:
    """Return the maximum per output row; ties share the gradient evenly."""
    torch = sys.modules["torch"]
    index = _places(updates, indices, size)
    across = index.reshape(-1, *([1] * (updates.dim() - 1))).expand_as(updates)
    lowest = float("-inf") if updates.is_floating_point() else torch.iinfo(updates.dtype).min
    largest = updates.new_full((size, *updates.shape[1:]), lowest).scatter_reduce(
        0, across, updates, "amax", include_self=False
    )
    occupied = torch.zeros(size, dtype=torch.bool, device=updates.device).index_fill(0, index, True)
    return torch.where(
        occupied.reshape(size, *([1] * (updates.dim() - 1))), largest, updates.new_full((), empty)
    )


def scatter_softmax(updates: Tensor, indices: Any, size: int) -> Tensor:
    """Return the softmax of updates within each output row."""
    index = _places(updates, indices, size)
    highest = scatter_max(updates.detach(), index, size, empty=0.0)
    exponentials = (updates - highest.index_select(0, index)).exp()
    return exponentials / scatter_add(exponentials, index, size).index_select(0, index)


def _places(updates: Tensor, indices: Any, size: int) -> Tensor:
    if size < 0:
        raise InvalidRequest(f"size={size}: expected 0 or more")
    index = _index("indices", indices, updates, size)
    if updates.dim() < 1 or updates.shape[0] != index.shape[0]:
        raise InvalidRequest(
            f"updates of shape {list(updates.shape)}, indices of shape {list(index.shape)}: "
            "expected one index for each update"
        )
    return index


def _index(name: str, indices: Any, like: Tensor, size: int) -> Tensor:
    torch = sys.modules["torch"]
    index = torch.as_tensor(indices, dtype=torch.int64, device=like.device)
    if index.dim() != 1:
        raise InvalidRequest(
            f"{name} of shape {list(index.shape)}: expected one dimension, shape [n]"
        )
    wrong = torch.nonzero((index < 0) | (index >= size))
    if len(wrong):
        position = int(wrong[0])
        raise InvalidRequest(f"{name}[{position}]={int(index[position])}: expected 0 to {size - 1}")
    return index
