"""String ids of nodes in spaces with ``ids: string``, and their hashes, the int64 ids.

The int64 id is SipHash-1-3 of the UTF-8 bytes of the string (Aumasson & Bernstein 2012, *SipHash: a
fast short-input PRF*, with one round per word and three at the end) under the key ``(salt, 0)``,
without the lowest bit: 63 bits, a valid node id. It depends only on the string and the salt, not on
the node type, the host or the order of nodes. The string itself is stored with the node, in its
column `ID_COLUMN`. `asterism_graphkit.arrays.siphash` is the same function, compiled for many
strings.

Several strings are a column of bytes: indptr, ndarray of int64, shape (n + 1,), and values, ndarray
of uint8, shape (indptr[n],).
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
"""Column of every node type with the string ids; the name is reserved for it."""
MAX_STRING_BYTES = 4096
"""Most bytes of a string id in UTF-8, for URLs and paths. It bounds messages, not what is stored:
stores of earlier releases, which had 256, need no change."""
FIXED_WIDTH_CHARS = 256
"""Longest string in a NumPy array of str, in which every entry has the width of the longest."""
_DISPLAY_CHARS = 80
"""Longest string that a message shows as a whole."""
_HASH_BLOCK = 8192
"""Strings hashed at a time, so that their state stays in the cache of a core."""
_SIPHASH_INIT = tuple(
    np.uint64(word)
    for word in (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
)
_END, _ALL, _EIGHT = np.uint64(0xFF), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(8)


def hash_strings(indptr: I64, values: U8, salt: int = 0, bits: int = 63) -> I64:
    """Return the int64 id of each string.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n + 1,)
    values : ndarray of uint8, shape (indptr[n],)
        The strings in UTF-8.
    salt : int
        Salt of the schema; another salt gives other ids.
    bits : int
        Width of ids, 1 to 63. Narrower ids are the highest bits of the 63-bit ids.

    Returns
    -------
    ndarray of int64, shape (n,)
        Ids from 0 to 2^bits - 1.
    """
    count = len(indptr) - 1
    out = np.empty(count, np.int64)
    words = np.zeros(
        int(indptr[-1]) // 8 + 2, "<u8"
    )  # padded by one word: loads past the last string are masked out
    words.view(np.uint8)[: len(values)] = values
    for block_start in range(0, count, _HASH_BLOCK):
        starts = indptr[block_start : min(block_start + _HASH_BLOCK, count) + 1]
        out[block_start : block_start + _HASH_BLOCK] = (
            _siphash(words, starts[:-1], np.diff(starts), np.uint64(salt)) >> np.uint64(64 - bits)
        ).astype(np.int64)
    return out


def _siphash(words: U64, starts: I64, lengths: I64, salt: np.uint64) -> U64:
    """Return SipHash-1-3 of each run of bytes: ndarray of uint64, shape (n,)."""
    order = np.argsort(
        -(lengths >> 3), kind="stable"
    )  # longest first, so that the runs with another word are always a prefix
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
    """Return the eight bytes at each byte offset as a little-endian number."""
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
    """Return the int64 id of one string."""
    return int(hash_strings(*encode_strings("name", [name]), salt)[0])


def encode_strings(label: str, names: Sequence[Any]) -> StringColumn:
    """Return string ids as a column of bytes.

    Parameters
    ----------
    label : str
        Name of the argument, for messages.
    names : sequence of str

    Returns
    -------
    indptr : ndarray of int64, shape (n + 1,)
    values : ndarray of uint8, shape (indptr[n],)

    Raises
    ------
    InvalidRequest
        For the first entry that is not a valid string id: not a string, empty, longer than
        `MAX_STRING_BYTES`, or with a NUL character or a lone surrogate.
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
            f"{label}[{index}] = {shortened(names[index])}: {invalid_reason(names[index].encode())}"
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
    """Return a column of bytes as an array of strings; empty entries become ``""``.

    Its dtype is str, or object if a string is longer than `FIXED_WIDTH_CHARS` bytes.
    """
    indptr, values = names
    if np.diff(indptr).max(initial=0) > FIXED_WIDTH_CHARS:
        return _decode_long_strings(names)
    text = values.tobytes().decode()
    if len(text) != len(values):
        raw, ends = values.tobytes(), indptr.tolist()
        return np.array([raw[start:stop].decode() for start, stop in pairwise(ends)], np.str_)
    lengths = np.diff(indptr)
    width = max(int(lengths.max(initial=1)), 1)
    out = np.zeros((len(lengths), width), np.uint32)  # all ASCII: one byte per character
    out[np.arange(width) < lengths[:, None]] = values
    return out.view(f"<U{width}").reshape(-1)


def _decode_long_strings(names: StringColumn) -> NDArray[Any]:
    indptr, values = names
    raw, out = values.tobytes(), np.empty(len(indptr) - 1, object)
    out[:] = [raw[start:stop].decode() for start, stop in pairwise(indptr.tolist())]
    return out


def invalid_mask(names: StringColumn) -> NDArray[np.bool_]:
    """Return True for each entry that is not a valid string id: ndarray of bool, shape (n,)."""
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
    """Return whether all entries are UTF-8.

    They are if their concatenation is, and no entry begins within a character.
    """
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
    """Return one entry as a column of length 1."""
    indptr, values = names
    return np.array([0, indptr[index + 1] - indptr[index]]), values[
        indptr[index] : indptr[index + 1]
    ]


def display_string(names: StringColumn, index: int) -> str:
    """Return one entry as quoted text for messages, shortened in the middle if it is long."""
    return shortened(single_row(names, index)[1].tobytes().decode(errors="backslashreplace"))


def shortened(text: str) -> str:
    """Return a string as quoted text for messages, shortened in the middle if it is long."""
    if len(text) <= _DISPLAY_CHARS:
        return repr(text)
    half = _DISPLAY_CHARS // 2
    return f"{text[:half] + '...' + text[-half:]!r} ({len(text)} characters)"


def invalid_reason(name: bytes) -> str:
    """Return the reason why bytes are not a valid string id."""
    if not name:
        return "the id is missing"
    if b"\0" in name:
        return "expected a string without NUL characters"
    if len(name) > MAX_STRING_BYTES:
        return f"expected at most {MAX_STRING_BYTES} bytes in UTF-8, found {len(name)}"
    return "expected UTF-8"


def check_strings(label: str, names: StringColumn) -> None:
    """Raise InvalidRequest for the first entry that is not a valid string id."""
    invalid = invalid_mask(names)
    if invalid.any():
        index = int(np.argmax(invalid))
        raise InvalidRequest(
            f"{label}[{index}] = {display_string(names, index)}: "
            f"{invalid_reason(single_row(names, index)[1].tobytes())}"
        )


def equal_mask(left: StringColumn, right: StringColumn) -> NDArray[np.bool_]:
    """Return True for each row with equal bytes in both columns: ndarray of bool, shape (n,)."""
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
    """Return the error message for two string ids of a type with the same int64 id."""
    return (
        f"{location}: the names {first} and {second} have the same id, {node_id}, under the salt "
        f"{salt} of this space; delete one of them, or create a space with another salt (as "
        f"`salt: {salt + 1}`) and load the data again"
    )
