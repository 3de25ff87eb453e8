"""Checks of alias tables and random words, by enumeration where possible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.distributions.checks.basis import require
from tests.kit.alias_tables import implied_distribution
from tests.kit.reference import key_with_word, parent_key

from asterism_graphkit.compile.jit import addresses_of, as_kernel_array
from asterism_graphkit.random import alias_build
from storaged.kernels import adjacency_rows
from storaged.kernels.global_sampling import row_sampling
from storaged.kernels.neighbors import with_replacement

WEIGHTS: Mapping[str, tuple[float, ...]] = {
    "one": (3.0,),
    "all equal": (2.0,) * 7,
    "one heavy": (1000.0, *(1.0,) * 9),
    "heavy last": (*(0.5,) * 6, 40.0),
    "zeros between": (0.0, 1.0, 0.0, 2.0, 3.0, 0.0),
    "zeros around one": (0.0, 5.0, 0.0),
    "float32's range": (1e-30, 1.0, 1e30, 1e-38, 3.0),
    "ascending": tuple(float(i) for i in range(1, 13)),
    "halves": (0.6, 0.25, 0.08, 0.04, 0.03),
}


def tables_are_exact(scale: float) -> None:
    """The distribution of thresholds equals the weights, to 10^-12 in total variation."""
    generator = np.random.default_rng(0)
    cases = dict(WEIGHTS) | {
        "lognormal": tuple(np.exp(generator.normal(size=max(40, int(2000 * scale))) * 4))
    }
    for name, values in cases.items():
        weights = np.array(values, np.float32)
        exact = weights.astype(np.float64) / math.fsum(weights.astype(np.float64).tolist())
        implied = implied_distribution(*alias_build.pack_thresholds(*alias_build.build(weights)))
        require(
            abs(implied - exact).sum() / 2 <= 1e-12,
            f"table {name}: total variation {abs(implied - exact).sum() / 2:.2g} from the weights",
        )
        require(not implied[weights == 0].any(), f"table {name}: a zero weight may be drawn")
        alias_thresholds, alias_fractions, _ = alias_build.build_rows(
            np.array([0, weights.size], np.int64), weights
        )
        require(
            abs(implied_distribution(alias_thresholds, alias_fractions) - exact).sum() / 2 <= 1e-12,
            f"table {name}: its row in a CSR has another distribution",
        )


def sums_are_compensated(scale: float) -> None:
    """The sum of weights is the float64 nearest to the exact sum, or next to it."""
    small = int(max(3000, 3 * alias_build.SUM_BLOCK * scale))
    for values in (np.r_[3e9, np.full(small, 0.1)], np.r_[np.full(small, 0.1), 3e9]):
        weights = values.astype(np.float32)
        exact = math.fsum(weights.astype(np.float64).tolist())
        _, _, sums = alias_build.build_rows(np.array([0, weights.size], np.int64), weights)
        for total in (alias_build.neumaier_sum(weights), float(sums[0])):
            require(
                abs(total - exact) <= math.ulp(exact),
                f"sum of {weights.size} weights: {total!r} instead of {exact!r}",
            )


def _draw_row(
    word: int, n: int, alias_thresholds: NDArray[Any], alias_fractions: NDArray[Any]
) -> int:
    """Return the row that a random word selects from one table."""
    out, tags = np.empty(1, np.int64), np.empty(1, np.int32)
    table = np.zeros((row_sampling.ENTRY_ROWS, 1), np.int64)
    table[[row_sampling.LOCAL, row_sampling.SIZE, row_sampling.SHIFT, row_sampling.SCALE], 0] = (
        1,
        n,
        3,
        1,
    )
    table[[row_sampling.THRESHOLDS, row_sampling.FRACTIONS], 0] = addresses_of(
        [alias_thresholds, alias_fractions]
    )
    row_sampling.draw_rows(
        as_kernel_array(table),
        row_sampling.GlobalDrawParams(
            part_key=np.uint64(0),
            row_key=np.uint64(key_with_word(word)),
            start=np.uint64(0),
            num_draws=np.int64(1),
        ),
        as_kernel_array(np.zeros(1, np.uint64)),
        as_kernel_array(np.zeros(1, np.uint32)),
        as_kernel_array(np.zeros(0, np.int64)),
        out,
        tags,
    )
    return int(out[0])


def rows_come_from_64_bits(scale: float) -> None:
    """Row r is selected by the words from ceil(r * 2^64 / n).

    Every row therefore has as many words as any other, within one.
    """
    del scale
    empty = as_kernel_array(np.zeros(0, np.uint64))

    def row_of(word: int, n: int) -> int:
        return _draw_row(word, n, empty, empty)

    def neighbor_of(word: int, n: int) -> int:
        out, zero, empty_ids = (
            np.empty(1, np.int64),
            as_kernel_array(np.zeros(1, np.int64)),
            as_kernel_array(np.zeros(0, np.int64)),
        )
        indptr, nbr = as_kernel_array(np.array([0, n], np.int64)), as_kernel_array(np.arange(n))
        table = np.zeros((1, adjacency_rows.COLUMNS), np.int64)
        table[0, [adjacency_rows.INDPTR, adjacency_rows.NBR]] = addresses_of([indptr, nbr])
        with_replacement.draw_slots(
            as_kernel_array(table),
            with_replacement.DrawParams(
                key=np.uint64(parent_key(key_with_word(word), 0)),
                num_draws=np.int64(1),
                type_index=np.int32(0),
            ),
            zero,
            empty_ids,
            as_kernel_array(np.zeros(1, np.int32)),
            zero,
            as_kernel_array(np.zeros(0, np.int32)),
            out,
            np.empty(0, np.int64),
            np.zeros(1, np.int64),
        )
        return int(out[0])

    for n in (3, 10, 1_000_003, 200_000_033, 2**32 - 1):
        for r in (1, 2, n // 3 + 1, n // 2 + 1, n - 1):
            step = -(-r * 2**64 // n)
            for picks in (row_of, neighbor_of) if n < 2_000_000 else (row_of,):
                drawn_rows = picks(step - 1, n), picks(step, n)
                require(
                    drawn_rows == (r - 1, r),
                    (
                        f"{n} rows: words {step - 1} and {step} draw {drawn_rows} instead of "
                        f"{(r - 1, r)}"
                    ),
                )
        require(row_of(0, n) == 0, f"{n} rows: word 0 does not draw row 0")
        require(
            row_of(2**64 - 1, n) == n - 1, f"{n} rows: the last word does not draw the last row"
        )


def coins_have_64_bits(scale: float) -> None:
    """A column of threshold T is kept by coins below T and not by T itself.

    This includes cases in which only the low half differs.
    """
    del scale
    for threshold in (1, 5, 2**31 + 7, 2**33 + 12345, 2**63 + 9, 2**64 - 2**20):
        alias_thresholds = as_kernel_array(
            np.array([threshold >> 32 << 32 | 1, 2**64 - 2**32 | 1], np.uint64)
        )
        alias_fractions = as_kernel_array(np.array([threshold & 0xFFFFFFFF, 0xFFFFFFFF], np.uint32))
        coins = (threshold - 2 + threshold % 2, threshold + threshold % 2)
        drawn_rows = [
            _draw_row(coin // 2, 2, alias_thresholds, alias_fractions) for coin in coins
        ]  # with two columns, the low product of the word is twice the word
        require(
            drawn_rows == [0, 1],
            f"threshold {threshold}: coins below and at it draw {drawn_rows} instead of [0, 1]",
        )


def unions_are_exact(scale: float) -> None:
    """Edge types of a union are chosen by their sums to 2^-50, even next to a heavy type."""
    del scale
    for sums in (
        [1e9, 0.1, 0.2, 0.3, 0.4],
        [0.1, 0.2, 0.3, 0.4, 1e9],
        [2.0**24, 1.0, 1.0, 1.0],
        [0.0, 1.0, 0.0, 3.0, 0.0],
    ):
        measures = as_kernel_array(np.array(sums, np.float64).reshape(-1, 1))

        def type_of(word: int, measures: NDArray[np.float64] = measures) -> int:
            which = np.empty(1, np.int32)
            with_replacement.choose_types(
                as_kernel_array(np.array([key_with_word(word)], np.uint64)),
                measures,
                np.int64(1),
                which,
                np.zeros(1, np.int64),
            )
            return int(which[0])

        cumulative_shares = np.cumsum(sums) / np.sum(sums)
        for t, total in enumerate(sums):
            low, high = 0, 2**64  # the first word that chooses a type beyond t
            while low < high:
                middle = (low + high) // 2
                low, high = (
                    (middle + 1, high)
                    if middle < 2**64 and type_of(min(middle, 2**64 - 1)) <= t
                    else (low, middle)
                )
            require(
                abs(low / 2**64 - cumulative_shares[t]) <= 2.0**-50,
                (
                    f"a union of {sums}: type {t} ends at {low / 2**64!r} instead of "
                    f"{float(cumulative_shares[t])!r}"
                ),
            )
            require(
                total > 0 or low == 0 or type_of(low - 1) != t,
                f"a union of {sums}: type {t} of weight 0 is chosen",
            )
