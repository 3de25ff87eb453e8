"""Pass named tuples of scalars and arrays to kernels at low cost.

Numba determines the type of a named tuple field by field, in Python, on every call from Python. For
a record of ten scalars that costs more than sampling a small batch. `kernel_record` does it once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, get_type_hints

import numpy as np
from numba import types
from numba.core.typing.typeof import typeof_impl

from asterism_graphkit.compile.jit import INTERPRETED

R = TypeVar("R", bound=type)

_SCALARS: dict[Any, Any] = {
    bool: types.boolean,
    np.int32: types.int32,
    np.int64: types.int64,
    np.uint64: types.uint64,
    np.float64: types.float64,
}


def kernel_record(cls: R) -> R:
    """Let kernels take instances of a named tuple without typing each of its fields.

    Parameters
    ----------
    cls : type
        A `typing.NamedTuple`. Fields annotated as ``bool``, ``np.int32``, ``np.int64``,
        ``np.uint64`` or ``np.float64`` are compiled as these types. All other fields hold arrays,
        which are compiled by element type, dimensions and flags.

    Returns
    -------
    type
        ``cls`` itself.

    Notes
    -----
    Compiled code counts references to the arrays of a record at every use. A `kernel` that takes a
    record of arrays therefore passes it to one `inlined` function, which counts no references, and
    does not pass it in a loop.
    """
    if not INTERPRETED:
        typeof_impl.register(cls)(_record_typeof(cls))
    return cls


def _record_typeof(cls: Any) -> Callable[[Any, Any], Any]:
    """Return the function that gives Numba's dispatcher the type of a record."""
    hints = get_type_hints(cls)
    scalars = [_SCALARS.get(hints[name]) for name in cls._fields]
    array_fields = [i for i, scalar in enumerate(scalars) if scalar is None]
    known: dict[Any, Any] = {}

    def typeof_record(record: Any, context: Any) -> Any:
        arrays = [record[i] for i in array_fields]
        key = tuple([(array.dtype.num, array.ndim, array.flags.num) for array in arrays])
        found = known.get(key)
        if found is None:
            fields = [
                typeof_impl(record[i], context) if scalar is None else scalar
                for i, scalar in enumerate(scalars)
            ]
            found = types.BaseTuple.from_types(fields, cls)  # type: ignore[no-untyped-call]  # Numba's
            known[key] = found
        return found

    return typeof_record
