"""Counter-based random words: every draw is a pure function of (seed, purpose, counter).

A *key* is a well-mixed 64-bit number made from a seed and tags. The *words* of a key are
splitmix64's output function (Steele, Lea & Flood 2014, "Fast splittable pseudorandom number
generators", variant 13 of Stafford's finalisers) of key + (i + 1) * GOLDEN. Keys are hashed, never
counted up, so that the streams of adjacent seeds or nodes are not lagged copies of each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asterism_graphkit.compile.jit import inlined, kernel_holding_gil, mulhi

# Constants of splitmix64, the salt of keys, and the step between node types.
# Part of the sampling contract: changing them changes results for a given seed.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_SALT = np.uint64(0xD6E8FEB86659FD93)
_TYPE_STEP = np.uint64(0xD1B54A32D192ED03)
_S30, _S27, _S31, _S12, _ONE = (
    np.uint64(30),
    np.uint64(27),
    np.uint64(31),
    np.uint64(12),
    np.uint64(1),
)
_S32, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_ALL = 0xFFFFFFFFFFFFFFFF

# Purposes: the first tag under a seed. A purpose is never reused for another kind of draw.
# Part of the sampling contract: changing them changes results for a given seed.
(
    PART,
    NODE_ROW,
    EDGE_ROW,
    NEIGHBOR,
    NEIGHBOR_TYPE,
    EXPONENTIAL_KEY,
    RESTART,
    RETURN,
    WEIGHTS,
    NEGATIVE,
    LAYER,
    LABEL,
    FILTER,
    BIDIRECTIONAL,
    PIECE,
) = range(1, 16)
TERMINATION = 16
LABOR = 17
TEMPORAL = 18
RANGE = 19
BUDGET = 20
CALL = 21
STEP_TYPES = 22
FIRST_STEP = 23
NODE_TYPE = 24
STATEMENT_STEP = 25


@inlined
def mix64(x: np.uint64) -> np.uint64:
    """Apply splitmix64's finaliser, a bijection of 64-bit words."""
    x = (x ^ (x >> _S30)) * _M1
    x = (x ^ (x >> _S27)) * _M2
    return x ^ (x >> _S31)


@inlined
def mix_key(key: np.uint64) -> np.uint64:
    """Return the key's half of `derive`.

    If one key has many tags, or one tag many keys, the shared half is computed once.
    """
    return mix64(key ^ _SALT)


@inlined
def mix_tag(tag: np.uint64) -> np.uint64:
    """Return the tag's half of `derive`."""
    return mix64((tag + _ONE) * GOLDEN)


@inlined
def derive(key: np.uint64, tag: np.uint64) -> np.uint64:
    """Return the key of ``tag`` under ``key``: ``mix64(mix_key(key) + mix_tag(tag))``."""
    return mix64(mix_key(key) + mix_tag(tag))


@inlined
def derive_mixed(key: np.uint64, tag: np.uint64) -> np.uint64:
    """Return the key of a tag under ``key`` if the tag is mixed already, as a `node_tag` is."""
    return mix64(mix_key(key) + tag)


@inlined
def node_offset(node: np.int64, node_type: np.int64) -> np.uint64:
    """Return the node's part of `node_tag`."""
    return np.uint64(node) * GOLDEN + np.uint64(node_type) * _TYPE_STEP


@inlined
def node_tag(position: np.uint64, node: np.int64, node_type: np.int64) -> np.uint64:
    """Return the tag of a node at a position of a request: the position's tag plus an offset.

    Different nodes at one position have different tags, and so has one node at different positions.
    """
    return mix_tag(position) + node_offset(node, node_type)


@inlined
def word(key: np.uint64, i: np.uint64) -> np.uint64:
    """Return word ``i`` of the stream of ``key``."""
    return mix64(key + (i + _ONE) * GOLDEN)


@inlined
def bounded(w: np.uint64, n: np.uint64) -> np.uint64:
    """Return a number in 0 .. n - 1 from a word: the high half of w * n.

    The low half, ``w * n``, may serve as a coin.
    """
    return mulhi(w, n)


@inlined
def bounded_short(w: np.uint64, n: np.uint64) -> np.uint64:
    """Return `bounded` for n < 2^32, computed with two 64-bit products.

    A loop over this form is vectorized.
    """
    return ((w >> _S32) * n + ((w & _LOW) * n >> _S32)) >> _S32


@inlined
def unit_float(w: np.uint64) -> float:
    """Return a float64 in (0, 1) from the high 52 bits of a word.

    It is exact, never 0 and never 1: the added half is the 53rd bit.
    """
    return (np.float64(w >> _S12) + 0.5) * 2.220446049250313e-16


@inlined
def unit_threshold(probability: float) -> np.int64:
    """Return the largest ``w >> 12`` of a word with a `unit_float` at most ``probability``.

    Returns -1 if there is none. The comparison is exact.
    """
    return np.int64(np.floor(probability * 4503599627370496.0 - 0.5))


@kernel_holding_gil
def _key_of(path: NDArray[np.uint64]) -> np.uint64:
    key = mix64(path[0])
    for i in range(1, path.shape[0]):
        key = derive(key, path[i])
    return key


def key_of(seed: int, *tags: int) -> np.uint64:
    """Return the key of a seed and a path of tags: ``key_of(seed, NEIGHBOR, direction, hop)``."""
    # Compiled functions return Python ints, which Numba would type as int64 if passed on. So the
    # result is always wrapped.
    return np.uint64(_key_of(np.array((seed & _ALL, *tags), np.uint64)))


def seed_of_type(seed: int, node_type: int) -> int:
    """Return the seed of draws from one node type, where each draw has a type of its own."""
    return int(key_of(seed, NODE_TYPE, node_type))
