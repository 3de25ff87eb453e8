"""Names: the strings that nodes of a space with ``ids: string`` are called by, and the int64 ids
that follow from them.

The id of a name is SipHash-1-3 of its UTF-8 bytes (Aumasson & Bernstein 2012, *SipHash: a fast
short-input PRF*, with one round a word and three at the end) under the key ``(salt, 0)``, without
the lowest bit: 63 bits, so that it is an id like any other. It is the same in every node type, on
every host and in whatever order nodes come; the name itself is kept with the node, as its column
`ID_COLUMN`. `asterism_graphkit.arrays.siphash` has the same function compiled, for many names at a
time.

Many names are a column of bytes: ``(indptr int64[n + 1], values uint8[indptr[n]])``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asterism_model import unicode_text
from asterism_proto.errors import InvalidRequest

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
U64 = NDArray[np.uint64]
StringColumn = tuple[I64, U8]

ID_COLUMN = "id"
"""The column of every node type that has the names; no other column may be called so."""
MAX_STRING_BYTES = 256
"""Of a name in UTF-8."""
_HASH_BLOCK = 8192
"""Names that are hashed at once: what is held of them stays in a core's cache."""
_SIPHASH_INIT = tuple(
    np.uint64(word)
    for word in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
)
_END, _ALL, _EIGHT = np.uint64(0xFF), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(8)


def hash_strings(indptr: I64, values: U8, salt: int = 0, bits: int = 63) -> I64:
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
    words = np.zeros(
        int(indptr[-1]) // 8 + 2, "<u8"
    )  # a word beyond the last name's: what is not its own is masked out
    words.view(np.uint8)[: len(values)] = values
    for block_start in range(0, count, _HASH_BLOCK):
        starts = indptr[block_start : min(block_start + _HASH_BLOCK, count) + 1]
        out[block_start : block_start + _HASH_BLOCK] = (
            _siphash(words, starts[:-1], np.diff(starts), np.uint64(salt)) >> np.uint64(64 - bits)
        ).astype(np.int64)
    return out


def _siphash(words: U64, starts: I64, lengths: I64, salt: np.uint64) -> U64:
    """SipHash-1-3 of each run of bytes: uint64[n]."""
    order = np.argsort(
        -(lengths >> 3), kind="stable"
    )  # of the most words first: whoever takes a further one is in front
    offsets, sizes = starts[order], lengths[order]
    state = [np.full(len(order), word) for word in _SIPHASH_INIT]
    state[0] ^= salt
    state[2] ^= salt
    full_words = sizes >> 3
    for word in range(int(full_words[0]) if len(order) else 0):
        active = int(np.searchsorted(-full_words, -word))
        _absorb([lane[:active] for lane in state], _load_words(words, offsets[:active] + 8 * word))
    tail_bytes = (sizes & 7).astype(np.uint64)
    last_word = _load_words(words, offsets + 8 * full_words) & ~(_ALL << (tail_bytes * _EIGHT))
    _absorb(state, last_word | (sizes.astype(np.uint64) << np.uint64(56)))
    state[2] ^= _END
    for _ in range(3):
        _round(*state)
    out = np.empty(len(order), np.uint64)
    out[order] = state[0] ^ state[1] ^ state[2] ^ state[3]
    return out


def _load_words(words: U64, offsets: I64) -> U64:
    """The eight bytes from each place on, as a number."""
    index, shift = offsets >> 3, ((offsets & 7) << 3).astype(np.uint64)
    loaded: U64 = (words[index] >> shift) | (
        words[index + 1] << np.uint64(1) << (np.uint64(63) - shift)
    )
    return loaded


def _absorb(state: Sequence[U64], word: U64) -> None:
    state[3][:] ^= word
    _round(*state)
    state[0][:] ^= word


def _round(v0: U64, v1: U64, v2: U64, v3: U64) -> None:
    v0 += v1
    v2 += v3
    _rotate_left(v1, 13)
    _rotate_left(v3, 16)
    v1 ^= v0
    v3 ^= v2
    _rotate_left(v0, 32)
    v2 += v1
    v0 += v3
    _rotate_left(v1, 17)
    _rotate_left(v3, 21)
    v1 ^= v2
    v3 ^= v0
    _rotate_left(v2, 32)


def _rotate_left(word: U64, bits: int) -> None:
    high = word >> np.uint64(64 - bits)
    word <<= np.uint64(bits)
    word |= high


def hash_string(name: str, salt: int = 0) -> int:
    """The id of one name."""
    return int(hash_strings(*encode_strings("name", [name]), salt)[0])


def encode_strings(label: str, names: Sequence[Any]) -> StringColumn:
    """Strings as a column of bytes.

    Raises
    ------
    InvalidRequest
        For what is no name: empty, longer than `MAX_STRING_BYTES`, with a NUL character, a lone
        surrogate, no string at all.
    """
    try:
        joined = "\0".join(names).encode()
    except (TypeError, UnicodeEncodeError) as error:
        unicode_text.check(label, list(names))
        raise InvalidRequest(
            f"{label}{_first_non_string(names)}: expected a string, the name of a node"
        ) from error
    values = np.frombuffer(joined, np.uint8)
    ends = np.flatnonzero(values == 0)
    if len(ends) != max(len(names) - 1, 0):
        index = next(i for i, name in enumerate(names) if "\0" in name)
        raise InvalidRequest(
            f"{label}[{index}] = {names[index]!r}: {invalid_reason(names[index].encode())}"
        )
    indptr = np.zeros(len(names) + 1, np.int64)
    indptr[1:-1], indptr[-1] = ends - np.arange(len(ends)), len(values) - len(ends)
    column = indptr, values[values != 0]
    check_strings(label, column)
    return column


def _first_non_string(names: Sequence[Any]) -> str:
    for i, name in enumerate(names):
        if not isinstance(name, str):
            return f"[{i}] = {name!r}"
    return ""


def decode_strings(names: StringColumn) -> NDArray[np.str_]:
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


def invalid_mask(names: StringColumn) -> NDArray[np.bool_]:
    """bool[n]: which are no names."""
    indptr, values = names
    lengths = np.diff(indptr)
    invalid = (lengths < 1) | (lengths > MAX_STRING_BYTES)
    zeros = np.flatnonzero(values == 0)
    if zeros.size:
        invalid[np.searchsorted(indptr, zeros, side="right") - 1] = True
    if values.size and values.max() >= 0x80 and not _is_utf8(names):
        invalid |= np.array([not _is_utf8(single_row(names, i)) for i in range(len(lengths))])
    return invalid


def _is_utf8(names: StringColumn) -> bool:
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


def single_row(names: StringColumn, index: int) -> StringColumn:
    """One of some names."""
    indptr, values = names
    return np.array([0, indptr[index + 1] - indptr[index]]), values[
        indptr[index] : indptr[index + 1]
    ]


def display_string(names: StringColumn, index: int) -> str:
    """One of some names, as a message has it."""
    return repr(single_row(names, index)[1].tobytes().decode(errors="backslashreplace"))


def invalid_reason(name: bytes) -> str:
    """Why a string of bytes is no name."""
    if not name:
        return "the id is missing"
    if b"\0" in name:
        return "a name has no NUL character"
    if len(name) > MAX_STRING_BYTES:
        return f"{len(name)} bytes; a name has {MAX_STRING_BYTES} at most in UTF-8"
    return "a name is UTF-8"


def check_strings(label: str, names: StringColumn) -> None:
    """InvalidRequest for the first that is no name."""
    invalid = invalid_mask(names)
    if invalid.any():
        index = int(np.argmax(invalid))
        raise InvalidRequest(
            f"{label}[{index}] = {display_string(names, index):.80}: "
            f"{invalid_reason(single_row(names, index)[1].tobytes())}"
        )


def equal_mask(left: StringColumn, right: StringColumn) -> NDArray[np.bool_]:
    """bool[n]: where two columns have the same bytes."""
    lengths = np.diff(left[0])
    equal: NDArray[np.bool_] = lengths == np.diff(right[0])
    rows = np.flatnonzero(equal)
    if rows.size:
        owner = np.repeat(rows, lengths[rows])
        step = np.arange(len(owner)) - np.repeat(
            np.cumsum(lengths[rows]) - lengths[rows], lengths[rows]
        )
        equal[owner[left[1][left[0][owner] + step] != right[1][right[0][owner] + step]]] = False
    return equal


def collision_message(location: str, first: str, second: str, node_id: int, salt: int) -> str:
    """What is wrong where two names of a type have one id, and what to do."""
    return (
        f"{location}: the names {first} and {second} have the same id, {node_id}, under the "
        f"salt {salt} of this space; "
        f"delete one of them, or make a space with another salt (as `salt: {salt + 1}`) and "
        "load it anew"
    )
