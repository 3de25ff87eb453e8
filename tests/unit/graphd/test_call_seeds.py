"""Tests of the seeds of calls: every field counts, and the values are part of the contract."""

from __future__ import annotations

import itertools
from typing import Any

from graphd.operators.call_seeds import (
    KEY_VERSION,
    Operator,
    call_seed,
    first_step_seed,
    statement_step_seed,
)

FIELDS: dict[str, list[Any]] = {
    "types": [(), (0,), (1,), (0, 1), (0, 1, 2)],
    "weighted": [True, False],
    "direction": [0, 1, 2],
    "weights": ["", "a", "ab"],
    "where": ["", "b", "ab"],
}


def test_calls_that_differ_in_a_field_have_different_seeds() -> None:
    calls = [
        (seed, operator, dict(zip(FIELDS, values, strict=True)))
        for seed in (0, 1)
        for operator in Operator
        for values in itertools.product(*FIELDS.values())
    ]
    seeds = {call_seed(seed, operator, **fields) for seed, operator, fields in calls}
    assert len(seeds) == len(calls)
    assert not seeds & {0, 1}


def test_the_order_of_types_and_repeats_do_not_matter() -> None:
    expected = call_seed(5, Operator.NEIGHBORS, types=(1, 4))
    assert call_seed(5, Operator.NEIGHBORS, types=(4, 1, 4)) == expected
    assert first_step_seed(5, (4, 1, 4)) == first_step_seed(5, (1, 4)) != first_step_seed(5, (1,))


def test_the_first_step_of_a_statement_has_its_seed() -> None:
    assert statement_step_seed(9, 1) == 9
    assert len({statement_step_seed(9, step) for step in range(1, 50)}) == 49


def test_seeds_change_only_with_the_version_of_keys() -> None:
    """Replay tokens rely on it: who changes a seed must increase `KEY_VERSION`."""
    seed = call_seed(
        7, Operator.NEIGHBORS, types=(2, 0), direction=2, weights="heavy", where="price > 3"
    )
    assert (KEY_VERSION, seed, call_seed(7, Operator.NODES, types=(0,), weighted=False)) == (
        2,
        11460968708358672028,
        16484945280125782376,
    )
