"""Names: the strings that nodes of a space with ``ids: string`` are called by, and the int64 ids that follow from them.

The id of a name is SipHash-1-3 of its UTF-8 bytes (Aumasson & Bernstein 2012, *SipHash: a fast short-input PRF*, with one
round a word and three at the end) under the key ``(salt, 0)``, without the lowest bit: 63 bits, so that it is an id like
any other. It is the same in every node type, on every host and in whatever order nodes come; the name itself is kept
with the node, as its column `COLUMN`. `graphkit.names` has the same function compiled, for many names at a time.

Many names are a column of bytes: ``(indptr int64[n + 1], values uint8[indptr[n]])``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_proto import texts
from asterism_proto.errors import InvalidRequest

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
Names = tuple[I64, U8]

COLUMN = "id"
"""The column of every node type that has the names; no other column may be called so."""
MAX_BYTES = 256
"""Of a name in UTF-8."""
_BLOCK = 8192
"""Names that are hashed at once: what is held of them stays in a core's cache."""
_START = tuple(np.uint64(word) for word in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573))
_END, _ALL, _EIGHT = np.uint64(0xFF), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(8)


def ids_of(indptr: I64, values: U8, salt: int = 0, bits: int = 63) -> I64:
    """The id of each name.

    Parameters
    ----------
    indptr, values : int64[n + 1], uint8[indptr[n]]
        Names.
    salt : int
        Of the space's schema: another one gives other ids.
    bits : int
        How wide ids are, 1 to 63: those of fewer bits are the highest bits of the others.

    Returns
    -------
    int64[n]
        0 or more, below 2^bits.
    """
    count = len(indptr) - 1
    out = np.empty(count, np.int64)
    words = np.zeros(int(indptr[-1]) // 8 + 2, "<u8")  # a word beyond the last name's: what is not its own is masked out
    words.view(np.uint8)[: len(values)] = values
    for low in range(0, count, _BLOCK):
        starts = indptr[low : min(low + _BLOCK, count) + 1]
        out[low : low + _BLOCK] = (_hashed(words, starts[:-1], np.diff(starts), np.uint64(salt)) >> np.uint64(64 - bits)).astype(np.int64)
    return out


def _hashed(words: U64, starts: I64, lengths: I64, salt: np.uint64) -> U64:
    """SipHash-1-3 of each run of bytes: uint64[n]."""
    order = np.argsort(-(lengths >> 3), kind="stable")  # of the most words first: whoever takes a further one is in front
    at, sizes = starts[order], lengths[order]
    state = [np.full(len(order), word) for word in _START]
    state[0] ^= salt
    state[2] ^= salt
    whole = sizes >> 3
    for word in range(int(whole[0]) if len(order) else 0):
        front = int(np.searchsorted(-whole, -word))
        _absorb([each[:front] for each in state], _words_at(words, at[:front] + 8 * word))
    left = (sizes & 7).astype(np.uint64)
    rest = _words_at(words, at + 8 * whole) & ~(_ALL << (left * _EIGHT))
    _absorb(state, rest | (sizes.astype(np.uint64) << np.uint64(56)))
    state[2] ^= _END
    for _ in range(3):
        _round(*state)
    out = np.empty(len(order), np.uint64)
    out[order] = state[0] ^ state[1] ^ state[2] ^ state[3]
    return out


def _words_at(words: U64, at: I64) -> U64:
    """The eight bytes from each place on, as a number."""
    place, shift = at >> 3, ((at & 7) << 3).astype(np.uint64)
    found: U64 = (words[place] >> shift) | (words[place + 1] << np.uint64(1) << (np.uint64(63) - shift))
    return found


def _absorb(state: Sequence[U64], word: U64) -> None:
    state[3][:] ^= word
    _round(*state)
    state[0][:] ^= word


def _round(v0: U64, v1: U64, v2: U64, v3: U64) -> None:
    v0 += v1
    v2 += v3
    _turn(v1, 13)
    _turn(v3, 16)
    v1 ^= v0
    v3 ^= v2
    _turn(v0, 32)
    v2 += v1
    v0 += v3
    _turn(v1, 17)
    _turn(v3, 21)
    v1 ^= v2
    v3 ^= v0
    _turn(v2, 32)


def _turn(word: U64, by: int) -> None:
    high = word >> np.uint64(64 - by)
    word <<= np.uint64(by)
    word |= high


def id_of(name: str, salt: int = 0) -> int:
    """The id of one name."""
    return int(ids_of(*encoded("name", [name]), salt)[0])


def encoded(what: str, names: Sequence[Any]) -> Names:
    """Strings as a column of bytes.

    Raises
    ------
    InvalidRequest
        For what is no name: empty, longer than `MAX_BYTES`, with a NUL character, a lone surrogate, no string at all.
    """
    try:
        joined = "\0".join(names).encode()
    except (TypeError, UnicodeEncodeError) as error:
        texts.check(what, list(names))
        raise InvalidRequest(f"{what}{_first_odd(names)}: expected a string, the name of a node") from error
    values = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(values == 0)
    if len(ends) != max(len(names) - 1, 0):
        at = next(i for i, name in enumerate(names) if "\0" in name)
        raise InvalidRequest(f"{what}[{at}] = {names[at]!r}: {why(names[at].encode())}")
    indptr = np.zeros(len(names) + 1, np.int64)
    indptr[1:-1], indptr[-1] = ends - np.arange(len(ends)), len(values) - len(ends)
    found = indptr, values[values != 0]
    refuse(what, found)
    return found


def _first_odd(names: Sequence[Any]) -> str:
    for i, name in enumerate(names):
        if not isinstance(name, str):
            return f"[{i}] = {name!r}"
    return ""


def decoded(names: Names) -> NDArray[np.str_]:
    """A column of bytes as strings; ``""`` where it is empty."""
    indptr, values = names
    text = values.tobytes().decode()
    if len(text) != len(values):
        raw, ends = values.tobytes(), indptr.tolist()
        return np.array([raw[start:stop].decode() for start, stop in pairwise(ends)], np.str_)
    lengths = np.diff(indptr)
    width = max(int(lengths.max(initial=1)), 1)
    out = np.zeros((len(lengths), width), np.uint32)  # all ASCII: a byte is a character
    out[np.arange(width) < lengths[:, None]] = values
    return out.view(f"<U{width}").reshape(-1)


def bad(names: Names) -> NDArray[np.bool_]:
    """bool[n]: which are no names."""
    indptr, values = names
    lengths = np.diff(indptr)
    found = (lengths < 1) | (lengths > MAX_BYTES)
    zeros = np.flatnonzero(values == 0)
    if zeros.size:
        found[np.searchsorted(indptr, zeros, side="right") - 1] = True
    if values.size and values.max() >= 0x80 and not _is_text(names):
        found |= np.array([not _is_text(row(names, i)) for i in range(len(lengths))])
    return found


def _is_text(names: Names) -> bool:
    """Whether all are UTF-8: together they are, and none begins within a character."""
    indptr, values = names
    begins = indptr[:-1][np.diff(indptr) > 0]
    if bool((values[begins] & 0xC0 == 0x80).any()):
        return False
    try:
        values.tobytes().decode()
    except UnicodeDecodeError:
        return False
    return True


def row(names: Names, at: int) -> Names:
    """One of some names."""
    indptr, values = names
    return np.array([0, indptr[at + 1] - indptr[at]]), values[indptr[at] : indptr[at + 1]]


def shown(names: Names, at: int) -> str:
    """One of some names, as a message has it."""
    return repr(row(names, at)[1].tobytes().decode(errors="backslashreplace"))


def why(name: bytes) -> str:
    """Why a string of bytes is no name."""
    if not name:
        return "the id is missing"
    if b"\0" in name:
        return "a name has no NUL character"
    if len(name) > MAX_BYTES:
        return f"{len(name)} bytes; a name has {MAX_BYTES} at most in UTF-8"
    return "a name is UTF-8"


def refuse(what: str, names: Names) -> None:
    """InvalidRequest for the first that is no name."""
    wrong = bad(names)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InvalidRequest(f"{what}[{at}] = {shown(names, at):.80}: {why(row(names, at)[1].tobytes())}")


def same(left: Names, right: Names) -> NDArray[np.bool_]:
    """bool[n]: where two columns have the same bytes."""
    lengths = np.diff(left[0])
    alike: NDArray[np.bool_] = lengths == np.diff(right[0])
    rows = np.flatnonzero(alike)
    if rows.size:
        owner = np.repeat(rows, lengths[rows])
        step = np.arange(len(owner)) - np.repeat(np.cumsum(lengths[rows]) - lengths[rows], lengths[rows])
        alike[owner[left[1][left[0][owner] + step] != right[1][right[0][owner] + step]]] = False
    return alike


def collision(where: str, one: str, other: str, number: int, salt: int) -> str:
    """What is wrong where two names of a type have one id, and what to do."""
    return (
        f"{where}: the names {one} and {other} have the same id, {number}, under the salt {salt} of this space; "
        f"delete one of them, or make a space with another salt (as `salt: {salt + 1}`) and load it anew"
    )
