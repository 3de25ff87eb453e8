"""Attributes of objects as columns: which one is the weight, what the others are called, what is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism.foreign import as_name
from asterism.objects.asked import Asked
from asterism.objects.tables import Column
from asterism.tensors import is_tensor
from asterism_proto.arrays import DTYPES
from asterism_proto.errors import InvalidRequest, NotFound

_ADVICE = "leave it out with `only`, or make numbers, texts or arrays of one shape of it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The attributes of one type."""

    weights: Column | None
    features: dict[str, Column]


class Attributes:
    """Takes the attributes of every type of an object, and in the end knows which of the caller's words meant nothing."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._names: set[str] = set()
        self._owners: set[str] = set()

    def take(self, owner: str, rows: int, raw: Mapping[str, Any], *, edges: bool, weight: Sequence[str] = ("weight",)) -> Taken:
        """The weight and the features of a type.

        Parameters
        ----------
        owner : str
            The type.
        rows : int
            How many it has.
        raw : mapping
            Attributes: tensors, arrays, or lists of Python's values where None is a missing one.
        edges : bool
            Whether it is an edge type: one name of a weight for all means these.
        weight : sequence of str
            What the object calls a weight, where the caller does not say.
        """
        self._owners.add(owner)
        self._names.update(raw)
        said = self._asked.weights.get(owner) if isinstance(self._asked.weights, Mapping) else self._asked.weights if edges else None
        if said is not None and said not in raw:
            raise NotFound(f"type {owner!r} has no attribute {said!r} for its weights; it has {', '.join(raw) or 'none'}")
        chosen = said or next((name for name in weight if name in raw), None)
        weights = None if chosen is None else column(f"type {owner!r}: weight {chosen!r}", raw[chosen], rows, missing=1)
        if weights is not None and (weights.shape or weights.dtype == "bytes"):
            raise InvalidRequest(f"type {owner!r}: weight {chosen!r}: expected a number a row, found {weights.dtype}{list(weights.shape)}")
        features: dict[str, Column] = {}
        for name, values in raw.items():
            if (name == chosen and said is None) or (self._asked.only is not None and name not in self._asked.only):
                continue
            called = self._asked.rename.get(name, as_name(name))
            if called in features:
                raise InvalidRequest(f"type {owner!r}: two features would be called {called!r}; rename one of them")
            if name == chosen and called == "weight":
                continue
            made = column(f"type {owner!r}: attribute {name!r}", values, rows, missing=self._asked.fill.get(name))
            try:
                made.feature(called)
            except InvalidRequest as error:
                raise InvalidRequest(f"type {owner!r}: {error.message}; say what it is to be called: rename={{{name!r}: ...}}") from error
            features[called] = made
        return Taken(weights=weights, features=features)

    def check(self) -> None:
        """Refuse names that the object does not have."""
        for word in ("rename", "only", "fill"):
            unknown = sorted(set(getattr(self._asked, word) or ()) - self._names)
            if unknown:
                raise NotFound(f"{word}: the object has no attribute {unknown[0]!r}; it has {', '.join(sorted(self._names)) or 'none'}")
        if isinstance(self._asked.weights, Mapping):
            unknown = sorted(set(self._asked.weights) - self._owners)
            if unknown:
                raise NotFound(f"weights: the object has no type {unknown[0]!r}; it has {', '.join(sorted(self._owners))}")


def column(what: str, values: Any, rows: int, *, missing: Any = None) -> Column:
    """Values as a column.

    Parameters
    ----------
    what : str
        What they are, for messages.
    values : tensor, array or sequence
        With ``rows`` rows. None is missing in a sequence.
    rows : int
        How many there must be.
    missing : optional
        What a missing value is; None: refused.

    Raises
    ------
    InvalidRequest
        For a dtype that is none of a feature's, rows of different shapes, values that are no numbers and no text.
    """
    if is_tensor(values):
        if "strided" not in str(values.layout):
            raise InvalidRequest(f"{what} is a sparse tensor; {_ADVICE}")
        dtype = str(values.dtype).removeprefix("torch.").replace("bfloat16", "float32")
    else:
        values = _plain(what, values, missing)
        if isinstance(values, tuple):
            if len(values[0]) - 1 != rows:
                raise InvalidRequest(f"{what} has {len(values[0]) - 1} rows; expected {rows}")
            return Column(dtype="bytes", values=values)
        dtype = values.dtype.name
    if values.ndim == 0 or len(values) != rows:
        raise InvalidRequest(f"{what} has shape {list(values.shape)}; expected {rows} rows")
    if dtype not in DTYPES:
        raise InvalidRequest(f"{what} has dtype {dtype}; features are {', '.join(sorted(DTYPES))} or texts: convert it, or leave it out with `only`")
    return Column(dtype=dtype, shape=tuple(int(extent) for extent in values.shape[1:]), values=values)


def _plain(what: str, values: Any, missing: Any) -> NDArray[Any] | tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """An array of numbers, or texts as bytes."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OSU":
        return values
    held = values.tolist() if isinstance(values, np.ndarray) else list(values)
    kinds = set(map(type, held))
    if type(None) in kinds:
        if missing is None:
            row = next(i for i, value in enumerate(held) if value is None)
            raise InvalidRequest(
                f"{what} is missing in row {row} and {held.count(None) - 1} more; give it everywhere, or say what such rows have with `fill`"
            )
        held = [missing if value is None else value for value in held]
        kinds = set(map(type, held))
    if kinds and all(issubclass(kind, str | bytes) for kind in kinds):
        return texts(held)
    if all(issubclass(kind, bool | int | float | np.number | np.bool_) for kind in kinds):
        array = np.asarray(held)
        if array.dtype.kind == "O":
            raise InvalidRequest(f"{what} has whole numbers beyond 64 bits; {_ADVICE}")
        return array
    if all(issubclass(kind, list | tuple | np.ndarray) for kind in kinds) or all(map(is_tensor, held)):
        return _stacked(what, held)
    odd = next(i for i, value in enumerate(held) if not isinstance(value, type(held[0])) or not isinstance(value, str | int | float | list | tuple))
    raise InvalidRequest(f"{what} has values of {', '.join(sorted(kind.__name__ for kind in kinds))}, row {odd} is {held[odd]!r:.80}; {_ADVICE}")


def _stacked(what: str, held: list[Any]) -> NDArray[Any]:
    """Rows that are vectors themselves, of one shape."""
    arrays = [np.asarray(row) if not is_ragged(row) else None for row in held]
    first = arrays[0]
    for row, array in enumerate(arrays):
        if array is None or first is None or array.shape != first.shape:
            shapes = [list(a.shape) if a is not None else "rows of several lengths" for a in (first, array)]
            raise InvalidRequest(
                f"{what} is ragged: row 0 has shape {shapes[0]}, row {row} {shapes[1]}; pad the rows to one shape, or leave it out with `only`"
            )
    stacked = np.stack([array for array in arrays if array is not None])
    if stacked.dtype.kind not in "biuf":
        raise InvalidRequest(f"{what} has rows of {stacked.dtype}; {_ADVICE}")
    return stacked


def is_ragged(row: Any) -> bool:
    """Whether a row's own rows differ in length."""
    try:
        np.asarray(row)
    except ValueError:
        return True
    return False


def texts(held: Iterable[str | bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Texts as UTF-8: where each begins, and their bytes."""
    pieces = [value.encode() if isinstance(value, str) else value for value in held]
    indptr = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)), out=indptr[1:])
    return indptr, np.frombuffer(b"".join(pieces), np.uint8)
