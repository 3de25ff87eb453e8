"""Check of tensor gathers and scatters against arrays, and of their gradients; prints OK."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from asterism import ops
from asterism_proto.errors import InvalidRequest

generator = np.random.default_rng(5)
values = generator.normal(size=(40, 3))
where = generator.integers(0, 6, 40)  # positions 6 and 7 stay empty
size = 8

for name in ("scatter_add", "scatter_mean", "scatter_max", "scatter_softmax"):
    scatter = getattr(ops, name)
    given = torch.tensor(values, requires_grad=True)
    found = scatter(given, torch.tensor(where), size)
    assert torch.allclose(found, torch.tensor(scatter(values, where, size))), name
    assert torch.autograd.gradcheck(
        lambda x, s=scatter: s(x, torch.tensor(where), size), (given,)
    ), name
rows = torch.tensor(generator.normal(size=(5, 2)), requires_grad=True)
picked = [4, 0, 4, 2]
assert torch.equal(ops.gather(rows, picked), rows[picked])
ops.gather(rows, picked).sum().backward()
assert rows.grad is not None
assert rows.grad[:, 0].tolist() == [1, 0, 1, 0, 2]

# Euler's rules: the gradient of a sum is gathered, that of a maximum is split over ties, and empty
# positions are -1e9.
ties = torch.tensor([2.0, 5.0, 5.0, 1.0, 5.0], requires_grad=True)
largest = ops.scatter_max(ties, [0, 0, 0, 1, 0], 3)
assert largest.tolist() == [5.0, 1.0, -1e9]
largest.sum().backward()
assert ties.grad is not None
assert torch.allclose(ties.grad, torch.tensor([0, 1 / 3, 1 / 3, 1, 1 / 3]))
assert ops.scatter_max(torch.tensor([3, -7]), [0, 0], 2, empty=-1).tolist() == [3, -1]
assert ops.scatter_max(torch.tensor([-1e10]), [0], 1).tolist() == [-1e10]
assert ops.scatter_add(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64), 3).shape == (3, 2)


def error_message(call: Callable[[], object]) -> str:
    """Return the error message of a call that must fail."""
    try:
        call()
    except InvalidRequest as error:
        return str(error)
    return "nothing was refused"


assert "indices[1]=5" in error_message(lambda: ops.gather(rows, [0, 5]))
assert "one index for each update" in error_message(lambda: ops.scatter_add(ties, [0], 3))
assert "indices[4]=-1" in error_message(lambda: ops.scatter_max(ties, [0, 1, 2, 3, -1], 4))
assert "one dimension" in error_message(lambda: ops.scatter_mean(ties, [[0]], 4))
assert "size=-1" in error_message(lambda: ops.scatter_add(ties, [0, 0, 0, 0, 0], -1))
print("OK")
